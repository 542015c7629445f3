-- The tables that changes need: the audit trail and the list of migrations. The memory's own tables stay untouched.
-- effect: changes can be made; each one leaves an entry in the trail in the same transaction
-- lock risk: none worth naming: four empty tables are created
--
-- Hashes and salts are hexadecimal digits, public facts, commitments and private values canonical JSON (keys sorted, no
-- blanks), times YYYY-MM-DDTHH:MM:SS.ffffffZ: all text, so that what is hashed is what is stored.

CREATE TABLE memory_migrations (
    version bigint NOT NULL PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at text NOT NULL,
    database_id text NOT NULL
);

CREATE TABLE memory_audit (
    seq bigint NOT NULL PRIMARY KEY,
    at text NOT NULL,
    database_id text NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    public text NOT NULL,
    commitments text NOT NULL,
    prev_hash text NOT NULL,
    hash text NOT NULL
);

-- The values behind the commitments. A salt lives and dies with its value: what is left behind cannot be guessed.
CREATE TABLE memory_audit_private (
    seq bigint NOT NULL,
    field text COLLATE "C" NOT NULL,
    salt text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (seq, field)
);

-- The last entry. Whoever appends locks this row, so that the chain has no gap and no fork.
CREATE TABLE memory_audit_head (
    id bigint NOT NULL PRIMARY KEY CHECK (id = 1),
    seq bigint NOT NULL,
    hash text NOT NULL
);

INSERT INTO memory_audit_head (id, seq, hash)
    VALUES (1, 0, '0000000000000000000000000000000000000000000000000000000000000000');
