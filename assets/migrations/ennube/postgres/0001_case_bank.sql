-- The five tables of the case bank, with their indexes. Vectors need the extension pgvector.
-- effect: profiles, cases, vectors, policies and the bank's own audit can be kept
-- lock risk: none worth naming: empty tables are created; indexes on tables that are there are built concurrently
-- blank: yes

-- step: profiles
CREATE TABLE IF NOT EXISTS agent_memory_profiles (
    id uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    window_size integer DEFAULT 200,
    created_at timestamptz DEFAULT now(),
    updated_at timestamptz DEFAULT now(),
    UNIQUE (user_sub, agent_key)
);
-- step: cases
CREATE TABLE IF NOT EXISTS agent_memory_cases (
    id uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
    profile_id uuid NOT NULL REFERENCES agent_memory_profiles (id) ON DELETE CASCADE,
    message_hash text NOT NULL,
    prompt_snapshot jsonb,
    plan_summary jsonb,
    tool_traces jsonb,
    outcome text CHECK (outcome IN ('success', 'failure', 'partial', 'aborted')),
    reward_score numeric(3,2) CHECK (reward_score >= 0 AND reward_score <= 1),
    tags text[],
    created_at timestamptz DEFAULT now(),
    reference_case_ids uuid[]
);
-- step: the extension for vectors
-- needs: extension vector
-- makes: extension vector
CREATE EXTENSION IF NOT EXISTS vector;
-- step: vectors
-- needs: extension vector
CREATE TABLE IF NOT EXISTS agent_memory_embeddings (
    case_id uuid NOT NULL PRIMARY KEY REFERENCES agent_memory_cases (id) ON DELETE CASCADE,
    embedding vector(1536),
    metadata jsonb,
    created_at timestamptz DEFAULT now()
);
-- step: policies
CREATE TABLE IF NOT EXISTS agent_memory_policies (
    id uuid NOT NULL DEFAULT gen_random_uuid() PRIMARY KEY,
    profile_id uuid NOT NULL REFERENCES agent_memory_profiles (id) ON DELETE CASCADE,
    version integer NOT NULL DEFAULT 1,
    weights jsonb,
    loss_metrics jsonb,
    trained_at timestamptz,
    status text DEFAULT 'active' CHECK (status IN ('active', 'training', 'failed')),
    created_at timestamptz DEFAULT now()
);
-- step: audit
CREATE TABLE IF NOT EXISTS agent_memory_audit (
    id bigserial NOT NULL PRIMARY KEY,
    user_sub text NOT NULL,
    agent_key text NOT NULL,
    action text NOT NULL CHECK (action IN ('insert_case', 'update_case', 'prune_case', 'retrieve_cases', 'train_policy')),
    payload jsonb,
    created_at timestamptz DEFAULT now()
);
-- step: index of a profile's cases by time
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_agent_memory_cases_profile_id_created_at ON agent_memory_cases (profile_id, created_at DESC);
-- step: index of cases by message
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_agent_memory_cases_message_hash ON agent_memory_cases (message_hash);
-- step: index of cases by tag
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_agent_memory_cases_tags ON agent_memory_cases USING gin (tags);
-- step: index of vectors
-- needs: extension vector
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_agent_memory_embeddings_embedding ON agent_memory_embeddings USING hnsw (embedding vector_cosine_ops) WITH (m = 16, ef_construction = 64);
-- step: index of policies by profile
CREATE INDEX CONCURRENTLY IF NOT EXISTS idx_agent_memory_policies_profile_id ON agent_memory_policies (profile_id);
