-- The planned columns for chains and structured metadata, and their indexes.
-- was: 5305b75718c344c32306bdcdb2b6a02e121c10b2885e8b9a4b6dac7fc6897446
-- requires: heart.episodes/agent_id heart.episodes/started_at
-- effect: an episode can name its parent and hold structured metadata, chains and topics are read through indexes; old rows stay as they are, their metadata an empty object; a parent that is not set is still read from the edges of the graph, and empty metadata from the structured summary
-- lock risk: each column locks the table for an instant and waits for that at most 500 ms at a time; indexes are built concurrently, readers and writers go on

-- step: episodes name their parent
ALTER TABLE heart.episodes ADD COLUMN IF NOT EXISTS parent_episode_id uuid REFERENCES heart.episodes (id);
-- step: episodes hold metadata
ALTER TABLE heart.episodes ADD COLUMN IF NOT EXISTS metadata jsonb DEFAULT '{}';
-- step: index of children by parent
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_episodes_parent ON heart.episodes (parent_episode_id) WHERE parent_episode_id IS NOT NULL;
-- step: index of metadata
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_episodes_metadata ON heart.episodes USING gin (metadata) WHERE metadata != '{}';
-- step: index of an agent's episodes by time
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_episodes_started_at ON heart.episodes (agent_id, started_at DESC);
