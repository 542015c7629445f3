-- The tables that changes need: the audit trail and the list of migrations. The memory's own tables stay untouched.
-- effect: changes can be made; each one leaves an entry in the trail in the same transaction
-- lock risk: none worth naming: four empty tables are created
--
-- Hashes and salts are hexadecimal digits, public facts, commitments and private values canonical JSON (keys sorted, no
-- blanks), times YYYY-MM-DDTHH:MM:SS.ffffffZ: all text, so that what is hashed is what is stored.

CREATE TABLE memory_migrations (
    version INTEGER NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL,
    database_id TEXT NOT NULL
);

CREATE TABLE memory_audit (
    seq INTEGER NOT NULL PRIMARY KEY,
    at TEXT NOT NULL,
    database_id TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    public TEXT NOT NULL,
    commitments TEXT NOT NULL,
    prev_hash TEXT NOT NULL,
    hash TEXT NOT NULL
);

-- The values behind the commitments. A salt lives and dies with its value: what is left behind cannot be guessed.
CREATE TABLE memory_audit_private (
    seq INTEGER NOT NULL,
    field TEXT NOT NULL,
    salt TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (seq, field)
);

-- The last entry. Whoever appends locks this row, so that the chain has no gap and no fork.
CREATE TABLE memory_audit_head (
    id INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    hash TEXT NOT NULL
);

INSERT INTO memory_audit_head (id, seq, hash)
    VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
