#!/usr/bin/env python3
"""Prints what commands take on a SQLite demo database, next to one read of the same columns by Python's sqlite3.

    mnemoscope demo /tmp/scale.db --episodes 100000 --no-console
    python3 benches/ratios.py target/release/mnemoscope /tmp/scale.db [COMMAND …]

For each command: the seconds that passed, the most memory it held, the seconds of the engine's own read, and the first as a
multiple of it, also in processor time. Each of some rounds (ROUNDS, 3) is the command, then the read; the medians are printed
with their range. Let nothing else run.
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import time

RUNS = int(os.environ.get("ROUNDS", "3"))


def facts(path):
    """Ids and names that the commands ask for, out of the database itself."""
    link = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    link.text_factory = bytes
    one = lambda sql: link.execute(sql).fetchone()[0].decode()
    return {
        "LIKE": one("SELECT episode_id FROM episode_embeddings LIMIT 1 OFFSET 500"),
        "OTHER": one("SELECT episode_id FROM episode_embeddings LIMIT 1 OFFSET 501"),
        "CHILD": one("SELECT id FROM episodes WHERE parent_id IS NOT NULL ORDER BY started_at LIMIT 1 OFFSET 300"),
        "TOPIC": one("SELECT topic FROM episodes WHERE topic IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"),
        "AGENT": one("SELECT agent_id FROM episodes WHERE agent_id IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"),
        "PERSON": one("SELECT user_id FROM episodes WHERE user_id IS NOT NULL GROUP BY 1 ORDER BY count(*), 1 LIMIT 1"),
        "USER": one("SELECT user_id FROM episodes GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"),
    }


TEXTS = (
    "SELECT id, started_at, canvas_action_count, feedback_score, title, summary, detail, observation, topic, domain, "
    "tags, workflow_name FROM episodes"
)
EPISODES = "SELECT * FROM episodes"
LINKS = "SELECT episode_id, memory_id FROM episode_memories"
INSIGHTS = [
    "SELECT id, canvas_id, canvas_type, component_type, action, created_at, episode_id, metadata FROM canvas_audit",
    "SELECT kind, rating, correction, episode_id FROM agent_feedback",
    "SELECT id, outcome, started_at, feedback_score, intervention_count, utility, decay_score, access_count, archived_at, "
    "consolidated_into, status, canvas_ids FROM episodes",
    LINKS,
    "SELECT id, reward, reference_case_ids, created_at FROM agent_memory_cases",
]

# Command: its words, and what the engine reads for it; none where it reads by an index.
COMMANDS = {
    "status": ("status", None),
    "page": ("list episode", None),
    "filter": ("list episode --where summary~zzznothing", [f"{EPISODES} WHERE summary LIKE '%zzznothing%'"]),
    "canvas filter": (
        "list canvas_event --where metadata~zzznothing",
        ["SELECT * FROM canvas_audit WHERE metadata LIKE '%zzznothing%'"],
    ),
    "order without index": (
        "list episode --order decay_score:desc",
        [f"{EPISODES} ORDER BY decay_score DESC, id DESC LIMIT 51"],
    ),
    "find": ("find zzznothing", None),
    "show": ("show episode CHILD", None),
    "chain": ("chain CHILD", None),
    "compare": ("compare episode LIKE OTHER", None),
    "recall": ("recall late+invoice+refund --ranking boosted", [TEXTS]),
    "recall, one user": ("recall late+invoice+refund --ranking boosted --user USER", None),
    "recall similar": (
        "recall late+invoice+refund --ranking similar",
        [
            "SELECT id, started_at, title, summary, observation, result, success, outcome, workflow_name "
            "FROM episodes"
        ],
    ),
    "recall proven": (
        "recall --ranking proven --topic TOPIC",
        [
            "SELECT id, started_at, domain, topic, utility, agent_id, user_id FROM episodes",
            LINKS,
            "SELECT * FROM memories",
        ],
    ),
    "recall like": (
        "recall --like LIKE --ranking boosted",
        [
            "SELECT id, started_at, canvas_action_count, feedback_score FROM episodes",
            "SELECT * FROM episode_embeddings",
        ],
    ),
    "replay": ("replay TOPIC", [TEXTS]),
    "insights": ("insights", INSIGHTS),
    "findings": ("findings", ["*"]),
    "backfill, plan": ("backfill", None),
    "prune, plan": ("prune", None),
    "graduation": ("graduation AGENT", None),
    "evaluate": ("evaluate", None),
    "purge, plan": ("purge PERSON", None),
    "as of": ("list episode --as-of 1h", None),
}


def engine(path, statements):
    """Wall and processor time of reading every row of some statements."""
    link = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    link.text_factory = bytes
    if statements == ["*"]:
        tables = link.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        statements = [f'SELECT * FROM "{name.decode()}"' for (name,) in tables]
    wall, cpu = time.monotonic(), time.process_time()
    for statement in statements:
        for _row in link.execute(statement):
            pass
    took = (time.monotonic() - wall, time.process_time() - cpu)
    link.close()
    return took


def ran(binary, path, words):
    """Wall and processor time and most memory, in MB, of a command."""
    begun = time.monotonic()
    child = subprocess.Popen(
        [binary, "-d", path, "--format", "json", "--no-progress", *words], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{' '.join(words)}: exit {os.waitstatus_to_exitcode(status)}")
    return time.monotonic() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def spread(numbers, digits):
    """The median of some numbers, with their range where it can be seen."""
    least, median, most = (f"{number:.{digits}f}" for number in (min(numbers), statistics.median(numbers), max(numbers)))
    return median if least == most else f"{median} ({least} to {most})"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, path, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    known = facts(path)
    print("| command | seconds | memory, MB | engine's read | ratio | ratio, processor |")
    print("|---|---|---|---|---|---|")
    for name, (words, statements) in COMMANDS.items():
        if wanted and name not in wanted:
            continue
        asked = [known.get(word, word.replace("+", " ")) for word in words.split()]
        rounds = [(ran(binary, path, asked), engine(path, statements) if statements else None) for _ in range(RUNS)]
        wall, cpu, memory = zip(*(command for command, _ in rounds))
        row = [name, spread(wall, 2), f"{max(memory):.0f}", "", "", ""]
        if statements:
            own_wall, own_cpu = zip(*(own for _, own in rounds))
            row[3:] = [
                spread(own_wall, 2),
                spread([a / b for a, b in zip(wall, own_wall)], 1),
                f"{statistics.median(cpu) / statistics.median(own_cpu):.1f}",
            ]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
