-- The index for canvas queries that is documented as ix_episodes_agent_canvas and that today's table lacks.
-- requires: agent_episodes/canvas_action_count
-- effect: an agent's episodes with canvas actions are found without reading all of them
-- lock risk: none worth naming: the index is built concurrently, readers and writers go on

-- step: index of episodes by agent and canvas actions
CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_agent_episodes_agent_canvas ON agent_episodes (agent_id, canvas_action_count);
