"""An agent on SQLite as most are: Python, with the SQLite that Python brings, which is older than ours.

Reads an order a line, in the words of `agent.rs`, and says what became of it, after the commit.
"""

import json
import sqlite3
import sys
import time

connection = None


def obey(order):
    global connection
    if order == "Close":
        if connection is not None:
            connection.close()
        connection = None
        return
    if connection is None:
        connection = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
    if "Plain" in order:
        connection.execute(order["Plain"]["sql"]).fetchall()
        if "journal_mode" in order["Plain"]["sql"]:
            # A connection that leaves WAL mode keeps its old pages, and would write them over what others committed.
            connection.close()
            connection = None
        return
    write = order["Write"]
    connection.execute("BEGIN IMMEDIATE")
    for sql in write["sql"]:
        connection.execute(sql).fetchall()
    time.sleep(write["hold"] / 1000)
    connection.execute("ROLLBACK" if write["taken_back"] else "COMMIT")


for line in sys.stdin:
    try:
        obey(json.loads(line))
        answer = "done"
    except sqlite3.Error as error:
        answer = f"refused {error}".replace("\n", " ")
        if connection is not None:
            connection.close()
        connection = None
    print(f"agent: {answer}", flush=True)

if connection is not None:
    connection.close()
