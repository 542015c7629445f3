-- The tables that erasing people needs: legal holds, the list that notices an erased person's return, and sessions.
-- effect: a person can be erased and that be proved; a hold keeps it from happening
-- lock risk: none worth naming: three empty tables are created

-- Who must not be erased, while it stands.
CREATE TABLE memory_holds (
    subject text NOT NULL PRIMARY KEY,
    reason text,
    actor text NOT NULL,
    created_at text NOT NULL
);

-- HMAC-SHA256 of every handle of an erased person, in hexadecimal digits; the key is kept outside the database.
CREATE TABLE memory_suppressions (
    hmac text NOT NULL PRIMARY KEY,
    session text NOT NULL,
    kind text NOT NULL,
    created_at text NOT NULL
);

-- Erasures: how far each one is. Nothing here says who it was about.
CREATE TABLE memory_purges (
    id text NOT NULL PRIMARY KEY,
    plan_id text NOT NULL,
    status text NOT NULL,
    position bigint NOT NULL,
    batches bigint NOT NULL,
    counts text NOT NULL,
    actor text NOT NULL,
    ticket text,
    created_at text NOT NULL,
    updated_at text NOT NULL,
    receipt_hash text
);
