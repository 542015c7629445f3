-- The column that the bank's own update of a reward writes, and without which it fails.
-- requires: agent_memory_cases
-- effect: rewards can be updated by the bank's own code and here, each update with its time; old cases stay as they are, never updated
-- lock risk: the table is locked for an instant and waited for at most 500 ms at a time

-- step: cases know when they were updated
ALTER TABLE agent_memory_cases ADD COLUMN IF NOT EXISTS updated_at timestamptz;
