-- The native layout on SQLite: every entity that mnemoscope knows, under its canonical column names.
-- effect: the database is a memory of its own: every entity has its table
-- lock risk: none worth naming in an empty database; tables and indexes that are there are left as they are
-- blank: yes
--
-- Times are text in one spelling, YYYY-MM-DDTHH:MM:SS.ffffffZ (UTC, microseconds), so that text order is time order.
-- JSON values and lists are JSON text, vectors are BLOBs of little-endian 32-bit floats, booleans are 0 or 1.
-- Tables are not STRICT and hardly a column is NOT NULL: a memory database keeps what agents wrote, however odd.
--
-- Foreign keys stand only where a row is nothing without its owner: vectors, and what is in a profile's bank.
-- Elsewhere children outlive parents on purpose: retention drops an episode and keeps its segments for a while,
-- canvas events and feedback are often written before the episode is, and a linked memory may live in a palace.
--
-- What is not stored is derived: a feedback's score, an agent's number of episodes, whether a case has a vector.

CREATE TABLE IF NOT EXISTS agents (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT,
    status TEXT DEFAULT 'active',
    created_at TEXT,
    last_seen TEXT
);

-- Accounts of the people that memories are about: what a person is called and can be reached by.
-- The entity subject is wider: whoever a row belongs to, with or without an account here.
CREATE TABLE IF NOT EXISTS subjects (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT,
    handles TEXT,
    created_at TEXT
);

CREATE TABLE IF NOT EXISTS episodes (
    id TEXT NOT NULL PRIMARY KEY,
    agent_id TEXT,
    user_id TEXT,
    session_id TEXT,
    execution_ids TEXT DEFAULT '[]',
    parent_id TEXT,
    title TEXT,
    summary TEXT,
    detail TEXT,
    domain TEXT,
    topic TEXT,
    status TEXT DEFAULT 'active',
    outcome TEXT DEFAULT 'unknown',
    started_at TEXT,
    ended_at TEXT,
    duration_seconds REAL,
    tags TEXT DEFAULT '[]',
    participants TEXT DEFAULT '[]',
    tools_used TEXT DEFAULT '[]',
    entities TEXT DEFAULT '[]',
    key_decisions TEXT,
    metadata TEXT,
    canvas_ids TEXT DEFAULT '[]',
    canvas_action_count INTEGER DEFAULT 0,
    feedback_ids TEXT DEFAULT '[]',
    feedback_score REAL,
    utility REAL DEFAULT 0.5,
    observation TEXT,
    thoughts TEXT,
    actions TEXT,
    result TEXT,
    success INTEGER,
    insight TEXT,
    workflow_name TEXT,
    context TEXT,
    maturity TEXT,
    importance REAL,
    decay_score REAL,
    access_count INTEGER DEFAULT 0,
    consolidated_into TEXT,
    archived_at TEXT,
    intervention_count INTEGER DEFAULT 0,
    constitutional_score REAL,
    confidence REAL
);

-- Vectors stand apart from their rows: a page of episodes must not read them.
CREATE TABLE IF NOT EXISTS episode_embeddings (
    episode_id TEXT NOT NULL PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
    embedding BLOB NOT NULL
);

CREATE TABLE IF NOT EXISTS episode_segments (
    id TEXT NOT NULL PRIMARY KEY,
    episode_id TEXT,
    sequence INTEGER,
    kind TEXT,
    content TEXT,
    source_type TEXT,
    source_id TEXT,
    created_at TEXT
);

CREATE TABLE IF NOT EXISTS canvas_audit (
    id TEXT NOT NULL PRIMARY KEY,
    episode_id TEXT,
    session_id TEXT,
    agent_id TEXT,
    user_id TEXT,
    canvas_id TEXT,
    canvas_type TEXT,
    component_type TEXT,
    component_name TEXT,
    action TEXT,
    metadata TEXT,
    created_at TEXT
);

CREATE TABLE IF NOT EXISTS agent_feedback (
    id TEXT NOT NULL PRIMARY KEY,
    episode_id TEXT,
    execution_id TEXT,
    agent_id TEXT,
    user_id TEXT,
    kind TEXT,
    rating INTEGER,
    correction TEXT,
    created_at TEXT
);

CREATE TABLE IF NOT EXISTS utility_events (
    id TEXT NOT NULL PRIMARY KEY,
    episode_id TEXT,
    signal TEXT,
    delta REAL,
    "before" REAL,
    "after" REAL,
    actor TEXT,
    reason TEXT,
    created_at TEXT
);

-- uses and utility are kept by whoever links: how many episodes used the memory, and the mean utility of the
-- latest 20 of them.
CREATE TABLE IF NOT EXISTS memories (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT,
    collection TEXT,
    title TEXT,
    text TEXT,
    metadata TEXT,
    created_at TEXT,
    uses INTEGER DEFAULT 0,
    utility REAL
);

CREATE TABLE IF NOT EXISTS episode_memories (
    episode_id TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    kind TEXT,
    rank INTEGER,
    PRIMARY KEY (episode_id, memory_id)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS agent_memory_profiles (
    id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT,
    agent_id TEXT,
    window_size INTEGER,
    created_at TEXT,
    updated_at TEXT
);

CREATE TABLE IF NOT EXISTS agent_memory_cases (
    id TEXT NOT NULL PRIMARY KEY,
    profile_id TEXT REFERENCES agent_memory_profiles (id) ON DELETE CASCADE,
    user_id TEXT,
    agent_id TEXT,
    message_hash TEXT,
    prompt TEXT,
    "plan" TEXT,
    traces TEXT,
    outcome TEXT,
    reward REAL,
    tags TEXT DEFAULT '[]',
    reference_case_ids TEXT DEFAULT '[]',
    created_at TEXT,
    quarantined INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE IF NOT EXISTS agent_memory_embeddings (
    case_id TEXT NOT NULL PRIMARY KEY REFERENCES agent_memory_cases (id) ON DELETE CASCADE,
    embedding BLOB NOT NULL
);

CREATE TABLE IF NOT EXISTS agent_memory_policies (
    id TEXT NOT NULL PRIMARY KEY,
    profile_id TEXT REFERENCES agent_memory_profiles (id) ON DELETE CASCADE,
    version INTEGER,
    weights TEXT,
    metrics TEXT,
    status TEXT,
    trained_at TEXT
);

CREATE TABLE IF NOT EXISTS agent_memory_audit (
    id TEXT NOT NULL PRIMARY KEY,
    actor TEXT,
    agent_id TEXT,
    action TEXT,
    payload TEXT,
    created_at TEXT
);

CREATE TABLE IF NOT EXISTS workflow_events (
    id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT,
    sequence INTEGER,
    kind TEXT,
    data TEXT,
    created_at TEXT
);

CREATE TABLE IF NOT EXISTS memory_access (
    id TEXT NOT NULL PRIMARY KEY,
    agent_id TEXT,
    user_id TEXT,
    query TEXT,
    ids TEXT DEFAULT '[]',
    kind TEXT,
    latency_ms REAL,
    policy_version INTEGER,
    tokens INTEGER,
    created_at TEXT
);

-- What each access recalled, so that an item's accesses are found without reading every list. Kept by triggers, so
-- that whoever writes memory_access need not know of it.
CREATE TABLE IF NOT EXISTS memory_access_items (
    item_id TEXT NOT NULL,
    access_id TEXT NOT NULL,
    PRIMARY KEY (item_id, access_id)
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS memory_access_inserted AFTER INSERT ON memory_access
WHEN json_valid(NEW.ids) AND json_type(NEW.ids) = 'array' BEGIN
    INSERT OR IGNORE INTO memory_access_items
        SELECT j.value, NEW.id FROM json_each(NEW.ids) j WHERE j.type = 'text';
END;

CREATE TRIGGER IF NOT EXISTS memory_access_deleted AFTER DELETE ON memory_access
WHEN json_valid(OLD.ids) AND json_type(OLD.ids) = 'array' BEGIN
    DELETE FROM memory_access_items
        WHERE access_id = OLD.id AND item_id IN (SELECT j.value FROM json_each(OLD.ids) j WHERE j.type = 'text');
END;

CREATE TRIGGER IF NOT EXISTS memory_access_updated AFTER UPDATE OF id, ids ON memory_access BEGIN
    DELETE FROM memory_access_items WHERE access_id = OLD.id AND item_id IN (
        SELECT j.value FROM json_each(CASE WHEN json_valid(OLD.ids) THEN OLD.ids ELSE '[]' END) j);
    INSERT OR IGNORE INTO memory_access_items
        SELECT j.value, NEW.id FROM json_each(CASE WHEN json_valid(NEW.ids) THEN NEW.ids ELSE '[]' END) j
        WHERE j.type = 'text';
END;

-- Pages go newest first by (time, id); the owner's pages by (owner, time, id).
CREATE INDEX IF NOT EXISTS ix_agents_seen ON agents (last_seen, id);

CREATE INDEX IF NOT EXISTS ix_episodes_started ON episodes (started_at, id);
CREATE INDEX IF NOT EXISTS ix_episodes_agent ON episodes (agent_id, started_at, id);
CREATE INDEX IF NOT EXISTS ix_episodes_user ON episodes (user_id, started_at, id);
CREATE INDEX IF NOT EXISTS ix_episodes_topic ON episodes (topic, started_at, id);
CREATE INDEX IF NOT EXISTS ix_episodes_session ON episodes (session_id);
CREATE INDEX IF NOT EXISTS ix_episodes_parent ON episodes (parent_id) WHERE parent_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_episodes_consolidated ON episodes (consolidated_into) WHERE consolidated_into IS NOT NULL;
CREATE INDEX IF NOT EXISTS ix_episodes_agent_canvas ON episodes (agent_id, canvas_action_count);

CREATE INDEX IF NOT EXISTS ix_episode_segments_created ON episode_segments (created_at, id);
CREATE INDEX IF NOT EXISTS ix_episode_segments_episode ON episode_segments (episode_id, sequence);

CREATE INDEX IF NOT EXISTS ix_canvas_audit_created ON canvas_audit (created_at, id);
CREATE INDEX IF NOT EXISTS ix_canvas_audit_episode_id ON canvas_audit (episode_id, created_at);
CREATE INDEX IF NOT EXISTS ix_canvas_audit_agent ON canvas_audit (agent_id, created_at, id);
CREATE INDEX IF NOT EXISTS ix_canvas_audit_user ON canvas_audit (user_id, created_at, id);
CREATE INDEX IF NOT EXISTS ix_canvas_audit_session ON canvas_audit (session_id);

CREATE INDEX IF NOT EXISTS ix_agent_feedback_created ON agent_feedback (created_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_feedback_episode_id ON agent_feedback (episode_id, created_at);
CREATE INDEX IF NOT EXISTS ix_agent_feedback_execution ON agent_feedback (execution_id);
CREATE INDEX IF NOT EXISTS ix_agent_feedback_agent ON agent_feedback (agent_id, created_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_feedback_user ON agent_feedback (user_id, created_at, id);

CREATE INDEX IF NOT EXISTS ix_utility_events_created ON utility_events (created_at, id);
CREATE INDEX IF NOT EXISTS ix_utility_events_episode ON utility_events (episode_id, created_at, id);
CREATE INDEX IF NOT EXISTS ix_utility_events_actor ON utility_events (actor);

CREATE INDEX IF NOT EXISTS ix_memories_created ON memories (created_at, id);
CREATE INDEX IF NOT EXISTS ix_episode_memories_rank ON episode_memories (rank, episode_id, memory_id);
CREATE INDEX IF NOT EXISTS ix_episode_memories_memory ON episode_memories (memory_id, episode_id);

CREATE INDEX IF NOT EXISTS ix_agent_memory_profiles_created ON agent_memory_profiles (created_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_memory_profiles_user ON agent_memory_profiles (user_id, agent_id);

CREATE INDEX IF NOT EXISTS ix_agent_memory_cases_created ON agent_memory_cases (created_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_memory_cases_profile ON agent_memory_cases (profile_id, created_at DESC);
CREATE INDEX IF NOT EXISTS ix_agent_memory_cases_user ON agent_memory_cases (user_id, agent_id, created_at DESC);
CREATE INDEX IF NOT EXISTS ix_agent_memory_cases_agent ON agent_memory_cases (agent_id, created_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_memory_cases_hash ON agent_memory_cases (message_hash);

CREATE INDEX IF NOT EXISTS ix_agent_memory_policies_trained ON agent_memory_policies (trained_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_memory_policies_profile ON agent_memory_policies (profile_id, version DESC);

CREATE INDEX IF NOT EXISTS ix_agent_memory_audit_created ON agent_memory_audit (created_at, id);
CREATE INDEX IF NOT EXISTS ix_agent_memory_audit_actor ON agent_memory_audit (actor, agent_id, created_at DESC);

CREATE INDEX IF NOT EXISTS ix_workflow_events_created ON workflow_events (created_at, id);
CREATE INDEX IF NOT EXISTS ix_workflow_events_run ON workflow_events (run_id, sequence);

CREATE INDEX IF NOT EXISTS ix_memory_access_created ON memory_access (created_at, id);
CREATE INDEX IF NOT EXISTS ix_memory_access_agent ON memory_access (agent_id, created_at, id);
CREATE INDEX IF NOT EXISTS ix_memory_access_user ON memory_access (user_id, created_at, id);
