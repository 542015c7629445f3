-- Whose a memory is, where it comes from, and how long it holds.
-- requires: memories episode_memories utility_events
-- effect: a memory can name its person, agent, session, tags, status, importance, sources, last change and expiry, and have a vector, so that one copied from another program keeps them; old rows have none of them
-- lock risk: columns come at once; an index keeps writers out while it is built, about a third of a second for each million rows
-- blank: yes

-- step: memories name their person
ALTER TABLE memories ADD COLUMN user_id TEXT;
-- step: memories name their agent
ALTER TABLE memories ADD COLUMN agent_id TEXT;
-- step: memories name their session
ALTER TABLE memories ADD COLUMN session_id TEXT;
-- step: memories have tags
ALTER TABLE memories ADD COLUMN tags TEXT;
-- step: memories have a status
ALTER TABLE memories ADD COLUMN status TEXT;
-- step: memories have an importance
ALTER TABLE memories ADD COLUMN importance REAL;
-- step: memories name their sources
ALTER TABLE memories ADD COLUMN source_ids TEXT;
-- step: memories know when they were changed
ALTER TABLE memories ADD COLUMN updated_at TEXT;
-- step: memories know when they end
ALTER TABLE memories ADD COLUMN expires_at TEXT;
-- step: memories have vectors
CREATE TABLE IF NOT EXISTS memory_embeddings (
    memory_id TEXT NOT NULL PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    embedding BLOB NOT NULL
);
-- step: index of memories by person
CREATE INDEX IF NOT EXISTS ix_memories_user ON memories (user_id, created_at, id);
