-- The tables that long changes need: where each stands, and the rows that it could not handle.
-- effect: backfills and other long changes can be run in batches, stopped, resumed and proved
-- lock risk: none worth naming: two empty tables are created

CREATE TABLE memory_jobs (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    -- Grows with every runner: whoever holds an older one is refused.
    token INTEGER NOT NULL,
    owner TEXT,
    heartbeat_at TEXT,
    -- JSON: how it was started.
    settings TEXT NOT NULL,
    -- JSON: the columns it relies on, as they were when it was started.
    relies_on TEXT NOT NULL,
    -- JSON: where the next batch begins.
    place TEXT NOT NULL,
    total INTEGER,
    seen INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    quarantined INTEGER NOT NULL,
    batches INTEGER NOT NULL,
    -- JSON: rows by table.
    counts TEXT NOT NULL,
    throttle TEXT,
    first_seq INTEGER,
    last_seq INTEGER,
    verification TEXT,
    problem TEXT,
    actor TEXT NOT NULL,
    ticket TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    ended_at TEXT
);

-- One run of a job at a time.
CREATE UNIQUE INDEX memory_jobs_open ON memory_jobs (name) WHERE state NOT IN ('succeeded', 'cancelled');

CREATE TABLE memory_job_quarantine (
    job_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    entity TEXT NOT NULL,
    row_id TEXT NOT NULL,
    problem TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (job_id, number)
);
