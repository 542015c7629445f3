-- Row-level security: whoever does not own the table sees the episodes of one user only.
-- optional: row-level-security
-- requires: heart.episodes/user_id
-- effect: other roles than the table's owner see only episodes of the user that `SET mnemoscope.user_id` names, and none where it is not set; the owner and superusers see all as before
-- lock risk: the table is locked for an instant and waited for at most 500 ms at a time; check first which role your agents log in as

-- step: policy on episodes
CREATE POLICY mnemoscope_owner ON heart.episodes USING (user_id = current_setting('mnemoscope.user_id', true));
-- step: security of episodes
ALTER TABLE heart.episodes ENABLE ROW LEVEL SECURITY;
