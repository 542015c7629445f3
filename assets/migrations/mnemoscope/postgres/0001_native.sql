-- The native layout on PostgreSQL (13 and later): every entity that mnemoscope knows, under its canonical column names.
-- effect: the database is a memory of its own: every entity has its table
-- lock risk: none worth naming in an empty database; tables and indexes that are there are left as they are
-- blank: yes
--
-- Ids are text, times timestamptz, JSON values and lists jsonb, numbers double precision, booleans boolean. Vectors are
-- pgvector's type where the extension is, or can be, installed; else bytea of little-endian 32-bit floats, compared by
-- the reader.
--
-- Hardly a column is NOT NULL: a memory database keeps what agents wrote, however odd. Text ids that order a page
-- collate as bytes ("C"), so that their order is the same on every server and their indexes can serve it.
--
-- Foreign keys stand only where a row is nothing without its owner: vectors, and what is in a profile's bank.
-- Elsewhere children outlive parents on purpose: retention drops an episode and keeps its segments for a while,
-- canvas events and feedback are often written before the episode is, and a linked memory may live in a palace.
--
-- What is not stored is derived: a feedback's score, an agent's number of episodes, whether a case has a vector.

CREATE TABLE IF NOT EXISTS agents (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    name text,
    status text DEFAULT 'active',
    created_at timestamptz,
    last_seen timestamptz
);

-- Accounts of the people that memories are about: what a person is called and can be reached by.
-- The entity subject is wider: whoever a row belongs to, with or without an account here.
CREATE TABLE IF NOT EXISTS subjects (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    name text,
    handles jsonb,
    created_at timestamptz
);

CREATE TABLE IF NOT EXISTS episodes (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    agent_id text COLLATE "C",
    user_id text COLLATE "C",
    session_id text COLLATE "C",
    execution_ids jsonb DEFAULT '[]',
    parent_id text COLLATE "C",
    title text,
    summary text,
    detail text,
    domain text,
    topic text,
    status text DEFAULT 'active',
    outcome text DEFAULT 'unknown',
    started_at timestamptz,
    ended_at timestamptz,
    duration_seconds double precision,
    tags jsonb DEFAULT '[]',
    participants jsonb DEFAULT '[]',
    tools_used jsonb DEFAULT '[]',
    entities jsonb DEFAULT '[]',
    key_decisions jsonb,
    metadata jsonb,
    canvas_ids jsonb DEFAULT '[]',
    canvas_action_count bigint DEFAULT 0,
    feedback_ids jsonb DEFAULT '[]',
    feedback_score double precision,
    utility double precision DEFAULT 0.5,
    observation text,
    thoughts jsonb,
    actions jsonb,
    result jsonb,
    success boolean,
    insight text,
    workflow_name text,
    context jsonb,
    maturity text,
    importance double precision,
    decay_score double precision,
    access_count bigint DEFAULT 0,
    consolidated_into text COLLATE "C",
    archived_at timestamptz,
    intervention_count bigint DEFAULT 0,
    constitutional_score double precision,
    confidence double precision
);

CREATE TABLE IF NOT EXISTS episode_segments (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    episode_id text COLLATE "C",
    sequence bigint,
    kind text,
    content text,
    source_type text,
    source_id text COLLATE "C",
    created_at timestamptz
);

CREATE TABLE IF NOT EXISTS canvas_audit (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    episode_id text COLLATE "C",
    session_id text COLLATE "C",
    agent_id text COLLATE "C",
    user_id text COLLATE "C",
    canvas_id text COLLATE "C",
    canvas_type text,
    component_type text,
    component_name text,
    action text,
    metadata jsonb,
    created_at timestamptz
);

CREATE TABLE IF NOT EXISTS agent_feedback (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    episode_id text COLLATE "C",
    execution_id text COLLATE "C",
    agent_id text COLLATE "C",
    user_id text COLLATE "C",
    kind text,
    rating bigint,
    correction text,
    created_at timestamptz
);

CREATE TABLE IF NOT EXISTS utility_events (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    episode_id text COLLATE "C",
    signal text,
    delta double precision,
    "before" double precision,
    "after" double precision,
    actor text COLLATE "C",
    reason text,
    created_at timestamptz
);

-- uses and utility are kept by whoever links: how many episodes used the memory, and the mean utility of the
-- latest 20 of them.
CREATE TABLE IF NOT EXISTS memories (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    kind text,
    collection text,
    title text,
    text text,
    metadata jsonb,
    created_at timestamptz,
    uses bigint DEFAULT 0,
    utility double precision
);

CREATE TABLE IF NOT EXISTS episode_memories (
    episode_id text COLLATE "C" NOT NULL,
    memory_id text COLLATE "C" NOT NULL,
    kind text,
    rank bigint,
    PRIMARY KEY (episode_id, memory_id)
);

CREATE TABLE IF NOT EXISTS agent_memory_profiles (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    user_id text COLLATE "C",
    agent_id text COLLATE "C",
    window_size bigint,
    created_at timestamptz,
    updated_at timestamptz
);

CREATE TABLE IF NOT EXISTS agent_memory_cases (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    profile_id text COLLATE "C" REFERENCES agent_memory_profiles (id) ON DELETE CASCADE,
    user_id text COLLATE "C",
    agent_id text COLLATE "C",
    message_hash text,
    prompt jsonb,
    "plan" jsonb,
    traces jsonb,
    outcome text,
    reward double precision,
    tags jsonb DEFAULT '[]',
    reference_case_ids jsonb DEFAULT '[]',
    created_at timestamptz,
    quarantined boolean NOT NULL DEFAULT false
);

CREATE TABLE IF NOT EXISTS agent_memory_policies (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    profile_id text COLLATE "C" REFERENCES agent_memory_profiles (id) ON DELETE CASCADE,
    version bigint,
    weights jsonb,
    metrics jsonb,
    status text,
    trained_at timestamptz
);

CREATE TABLE IF NOT EXISTS agent_memory_audit (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    actor text COLLATE "C",
    agent_id text COLLATE "C",
    action text,
    payload jsonb,
    created_at timestamptz
);

CREATE TABLE IF NOT EXISTS workflow_events (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    run_id text COLLATE "C",
    sequence bigint,
    kind text,
    data jsonb,
    created_at timestamptz
);

CREATE TABLE IF NOT EXISTS memory_access (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    agent_id text COLLATE "C",
    user_id text COLLATE "C",
    query text,
    ids jsonb DEFAULT '[]',
    kind text,
    latency_ms double precision,
    policy_version bigint,
    tokens bigint,
    created_at timestamptz
);

-- Vectors stand apart from their rows: a page of episodes must not read them.
DO $$
DECLARE
    vector_type text := 'bytea';
BEGIN
    IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
        BEGIN
            CREATE EXTENSION IF NOT EXISTS vector;
        EXCEPTION WHEN OTHERS THEN
            -- Not allowed, or not possible here: bytea serves.
            RAISE NOTICE 'pgvector is not used: %', SQLERRM;
        END;
    END IF;
    SELECT format('%I.vector', n.nspname) INTO vector_type
        FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector';
    vector_type := coalesce(vector_type, 'bytea');
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS episode_embeddings (
            episode_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES episodes (id) ON DELETE CASCADE,
            embedding %s NOT NULL
        )', vector_type);
    EXECUTE format(
        'CREATE TABLE IF NOT EXISTS agent_memory_embeddings (
            case_id text COLLATE "C" NOT NULL PRIMARY KEY REFERENCES agent_memory_cases (id) ON DELETE CASCADE,
            embedding %s NOT NULL
        )', vector_type);
END
$$;

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
-- Which accesses recalled an item.
CREATE INDEX IF NOT EXISTS ix_memory_access_ids ON memory_access USING gin (ids);
