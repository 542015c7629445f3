-- The tables that erasing people needs: legal holds, the list that notices an erased person's return, and sessions.
-- effect: a person can be erased and that be proved; a hold keeps it from happening
-- lock risk: none worth naming: three empty tables are created

-- Who must not be erased, while it stands.
CREATE TABLE memory_holds (
    subject TEXT NOT NULL PRIMARY KEY,
    reason TEXT,
    actor TEXT NOT NULL,
    created_at TEXT NOT NULL
);

-- HMAC-SHA256 of every handle of an erased person, in hexadecimal digits; the key is kept outside the database.
CREATE TABLE memory_suppressions (
    hmac TEXT NOT NULL PRIMARY KEY,
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at TEXT NOT NULL
);

-- Erasures: how far each one is. Nothing here says who it was about.
CREATE TABLE memory_purges (
    id TEXT NOT NULL PRIMARY KEY,
    plan_id TEXT NOT NULL,
    status TEXT NOT NULL,
    position INTEGER NOT NULL,
    batches INTEGER NOT NULL,
    counts TEXT NOT NULL,
    actor TEXT NOT NULL,
    ticket TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    receipt_hash TEXT
);
