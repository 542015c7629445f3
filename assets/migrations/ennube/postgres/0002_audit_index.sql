-- The index of the bank's audit that its plan names and that is missing.
-- requires: agent_memory_audit
-- effect: what was done for a user and an agent is found, newest first, without reading the whole audit
-- lock risk: none worth naming: the index is built concurrently, readers and writers go on

-- step: index of the audit by user, agent and time
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_agent_memory_audit_user_sub_agent_key_created_at ON agent_memory_audit (user_sub, agent_key, created_at DESC);
