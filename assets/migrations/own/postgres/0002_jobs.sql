-- The tables that long changes need: where each stands, and the rows that it could not handle.
-- effect: backfills and other long changes can be run in batches, stopped, resumed and proved
-- lock risk: none worth naming: two empty tables are created

CREATE TABLE memory_jobs (
    id text NOT NULL PRIMARY KEY,
    name text NOT NULL,
    state text NOT NULL,
    -- Grows with every runner: whoever holds an older one is refused.
    token bigint NOT NULL,
    owner text,
    heartbeat_at text,
    -- JSON: how it was started.
    settings text NOT NULL,
    -- JSON: the columns it relies on, as they were when it was started.
    relies_on text NOT NULL,
    -- JSON: where the next batch begins.
    place text NOT NULL,
    total bigint,
    seen bigint NOT NULL,
    changed bigint NOT NULL,
    quarantined bigint NOT NULL,
    batches bigint NOT NULL,
    -- JSON: rows by table.
    counts text NOT NULL,
    throttle text,
    first_seq bigint,
    last_seq bigint,
    verification text,
    problem text,
    actor text NOT NULL,
    ticket text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    ended_at text
);

-- One run of a job at a time.
CREATE UNIQUE INDEX memory_jobs_open ON memory_jobs (name) WHERE state NOT IN ('succeeded', 'cancelled');

CREATE TABLE memory_job_quarantine (
    job_id text NOT NULL,
    number bigint NOT NULL,
    entity text NOT NULL,
    row_id text NOT NULL,
    problem text NOT NULL,
    at text NOT NULL,
    PRIMARY KEY (job_id, number)
);
