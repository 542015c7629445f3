-- Row-level security of what hangs on a person's rows, of recalls, and of the people themselves.
-- optional: row-level-security
-- requires: episodes/user_id episode_segments/episode_id utility_events/episode_id episode_memories/episode_id workflow_events/run_id memory_access/user_id subjects agent_memory_profiles/user_id agent_memory_policies/profile_id
-- effect: other roles than the tables' owner see only the messages, signals, links, workflow events and policies of rows that they see, the recalls of the user that `SET mnemoscope.user_id` names and those of nobody, and that user alone among the people; vectors, the agents' trail and the list of agents stay readable; the owner and superusers see all as before
-- lock risk: each table is locked for an instant and waited for at most 500 ms at a time; check first which role your agents log in as

-- step: policy on segments
CREATE POLICY mnemoscope_owner ON episode_segments USING (episode_id IN (SELECT id FROM episodes));
-- step: policy on signals
CREATE POLICY mnemoscope_owner ON utility_events USING (episode_id IN (SELECT id FROM episodes));
-- step: policy on links to memories
CREATE POLICY mnemoscope_owner ON episode_memories USING (episode_id IN (SELECT id FROM episodes));
-- step: policy on workflow events
CREATE POLICY mnemoscope_owner ON workflow_events USING (run_id IN (SELECT jsonb_array_elements_text(CASE WHEN jsonb_typeof(execution_ids) = 'array' THEN execution_ids ELSE '[]' END) FROM episodes));
-- step: policy on policies
CREATE POLICY mnemoscope_owner ON agent_memory_policies USING (profile_id IN (SELECT id FROM agent_memory_profiles));
-- step: policy on recalls
CREATE POLICY mnemoscope_owner ON memory_access USING (user_id IS NULL OR user_id = current_setting('mnemoscope.user_id', true));
-- step: policy on people
CREATE POLICY mnemoscope_owner ON subjects USING (id = current_setting('mnemoscope.user_id', true));
-- step: security of segments
ALTER TABLE episode_segments ENABLE ROW LEVEL SECURITY;
-- step: security of signals
ALTER TABLE utility_events ENABLE ROW LEVEL SECURITY;
-- step: security of links to memories
ALTER TABLE episode_memories ENABLE ROW LEVEL SECURITY;
-- step: security of workflow events
ALTER TABLE workflow_events ENABLE ROW LEVEL SECURITY;
-- step: security of policies
ALTER TABLE agent_memory_policies ENABLE ROW LEVEL SECURITY;
-- step: security of recalls
ALTER TABLE memory_access ENABLE ROW LEVEL SECURITY;
-- step: security of people
ALTER TABLE subjects ENABLE ROW LEVEL SECURITY;
