-- Row-level security: whoever does not own the tables sees the rows of one user only.
-- optional: row-level-security
-- requires: episodes/user_id canvas_audit/user_id agent_feedback/user_id
-- effect: other roles than the tables' owner see only rows of the user that `SET mnemoscope.user_id` names, and none where it is not set; the owner and superusers see all as before
-- lock risk: each table is locked for an instant and waited for at most 500 ms at a time; check first which role your agents log in as

-- step: policy on episodes
CREATE POLICY mnemoscope_owner ON episodes USING (user_id::text = current_setting('mnemoscope.user_id', true));
-- step: policy on canvas_audit
CREATE POLICY mnemoscope_owner ON canvas_audit USING (user_id::text = current_setting('mnemoscope.user_id', true));
-- step: policy on agent_feedback
CREATE POLICY mnemoscope_owner ON agent_feedback USING (user_id::text = current_setting('mnemoscope.user_id', true));
-- step: security of episodes
ALTER TABLE episodes ENABLE ROW LEVEL SECURITY;
-- step: security of canvas_audit
ALTER TABLE canvas_audit ENABLE ROW LEVEL SECURITY;
-- step: security of agent_feedback
ALTER TABLE agent_feedback ENABLE ROW LEVEL SECURITY;
