-- Row-level security of memories that name their person.
-- optional: row-level-security
-- requires: memories/user_id episode_memories utility_events
-- effect: other roles than the table's owner see only memories of the user that `SET mnemoscope.user_id` names and those of nobody; the owner and superusers see all as before
-- lock risk: the table is locked for an instant and waited for at most 500 ms at a time; check first which role your agents log in as

-- step: policy on memories
CREATE POLICY mnemoscope_owner ON memories USING (user_id IS NULL OR user_id = current_setting('mnemoscope.user_id', true));
-- step: security of memories
ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
