-- Row-level security: whoever does not own the tables sees the bank of one user only.
-- optional: row-level-security
-- requires: agent_memory_profiles/user_sub agent_memory_cases/profile_id agent_memory_policies/profile_id agent_memory_audit/user_sub
-- effect: other roles than the tables' owner see only rows of the user that `SET mnemoscope.user_id` names, and none where it is not set; the owner and superusers see all as before
-- lock risk: each table is locked for an instant and waited for at most 500 ms at a time; check first which role your agents log in as

-- step: policy on profiles
CREATE POLICY mnemoscope_owner ON agent_memory_profiles USING (user_sub = current_setting('mnemoscope.user_id', true));
-- step: policy on cases
CREATE POLICY mnemoscope_owner ON agent_memory_cases USING (profile_id IN (SELECT p.id FROM agent_memory_profiles p WHERE p.user_sub = current_setting('mnemoscope.user_id', true)));
-- step: policy on policies
CREATE POLICY mnemoscope_owner ON agent_memory_policies USING (profile_id IN (SELECT p.id FROM agent_memory_profiles p WHERE p.user_sub = current_setting('mnemoscope.user_id', true)));
-- step: policy on the audit
CREATE POLICY mnemoscope_owner ON agent_memory_audit USING (user_sub = current_setting('mnemoscope.user_id', true));
-- step: security of profiles
ALTER TABLE agent_memory_profiles ENABLE ROW LEVEL SECURITY;
-- step: security of cases
ALTER TABLE agent_memory_cases ENABLE ROW LEVEL SECURITY;
-- step: security of policies
ALTER TABLE agent_memory_policies ENABLE ROW LEVEL SECURITY;
-- step: security of the audit
ALTER TABLE agent_memory_audit ENABLE ROW LEVEL SECURITY;
-- step: policy on vectors
-- needs: table agent_memory_embeddings
CREATE POLICY mnemoscope_owner ON agent_memory_embeddings USING (case_id IN (SELECT c.id FROM agent_memory_cases c JOIN agent_memory_profiles p ON p.id = c.profile_id WHERE p.user_sub = current_setting('mnemoscope.user_id', true)));
-- step: security of vectors
-- needs: table agent_memory_embeddings
ALTER TABLE agent_memory_embeddings ENABLE ROW LEVEL SECURITY;
