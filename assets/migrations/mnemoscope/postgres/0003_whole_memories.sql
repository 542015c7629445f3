-- Whose a memory is, where it comes from, and how long it holds.
-- requires: memories episode_memories utility_events
-- effect: a memory can name its person, agent, session, tags, status, importance, sources, last change and expiry, and have a vector, so that one copied from another program keeps them; old rows have none of them
-- lock risk: each column locks the table for an instant and waits for that at most 500 ms at a time; the index is built concurrently, readers and writers go on
-- blank: yes

-- step: memories name their person
ALTER TABLE memories ADD COLUMN IF NOT EXISTS user_id text COLLATE "C";
-- step: memories name their agent
ALTER TABLE memories ADD COLUMN IF NOT EXISTS agent_id text COLLATE "C";
-- step: memories name their session
ALTER TABLE memories ADD COLUMN IF NOT EXISTS session_id text COLLATE "C";
-- step: memories have tags
ALTER TABLE memories ADD COLUMN IF NOT EXISTS tags jsonb;
-- step: memories have a status
ALTER TABLE memories ADD COLUMN IF NOT EXISTS status text;
-- step: memories have an importance
ALTER TABLE memories ADD COLUMN IF NOT EXISTS importance double precision;
-- step: memories name their sources
ALTER TABLE memories ADD COLUMN IF NOT EXISTS source_ids jsonb;
-- step: memories know when they were changed
ALTER TABLE memories ADD COLUMN IF NOT EXISTS updated_at timestamptz;
-- step: memories know when they end
ALTER TABLE memories ADD COLUMN IF NOT EXISTS expires_at timestamptz;
-- step: memories have vectors
DO $$
DECLARE
    vector_type text;
BEGIN
    SELECT format_type(a.atttypid, NULL) INTO vector_type FROM pg_attribute a
    WHERE a.attrelid = to_regclass('episode_embeddings') AND a.attname = 'embedding';
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS memory_embeddings (
            memory_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
            embedding %s NOT NULL
        )', coalesce(vector_type, 'bytea'));
END
$$;
-- step: index of memories by person
CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_memories_user ON memories (user_id, created_at, id);
