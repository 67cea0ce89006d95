"""What a protected call costs in Python, beside SQLite's own module and the bare disk.

usage: measure.py CALLS, in a directory of its own. Prints one line of JSON; times are medians in microseconds.
"""

import json
import os
import platform
import random
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import semel

# So many of one kind follow each other: both kinds see the same machine.
BLOCK = 50
REPLY = {"id": "r" * 190}

calls = int(sys.argv[1])
semel.configure(ledger="ledger.db")


@semel.once(key="{invoice}")
def charge(invoice: str) -> dict:
    return REPLY


def fill() -> list[str]:
    """Effects whose replies are known, until the ledger's log was folded back once: so a ledger spends its life."""
    names: list[str] = []
    with ThreadPoolExecutor(16) as pool:
        while len(names) < calls or os.path.getsize("ledger.db") < 256 * 1024:
            some = [f"known-{len(names) + n}" for n in range(256)]
            list(pool.map(charge, some))
            names += some
    return names


def bare_table(names: list[str]) -> sqlite3.Connection:
    """The same keys and replies, and nothing else."""
    table = sqlite3.connect("bare.db", isolation_level=None)
    table.execute("PRAGMA journal_mode=WAL")
    table.execute("CREATE TABLE effect(key TEXT PRIMARY KEY, reply TEXT) WITHOUT ROWID")
    reply = json.dumps(REPLY, separators=(",", ":"))
    table.execute("BEGIN")
    table.executemany("INSERT INTO effect VALUES(?, ?)", [(name, reply) for name in names])
    table.execute("COMMIT")
    return table


def timed(work, name: str, times: list[int]) -> None:
    started = time.perf_counter_ns()
    work(name)
    times.append(time.perf_counter_ns() - started)


names = fill()
table = bare_table(names)
appended = os.open("appended", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
page = b"\7" * 4096


def read(name: str) -> None:
    row = table.execute("SELECT reply FROM effect WHERE key = ?", (name,)).fetchone()
    assert len(row[0]) > 190


def flush_twice(_: str) -> None:
    for _ in range(2):
        os.write(appended, page)
        os.fdatasync(appended)


replays, reads, fresh, flushes = [], [], [], []
for block in range(calls // BLOCK):
    for name in random.choices(names, k=4 * BLOCK):
        timed(read, name, reads)
    for name in random.choices(names, k=4 * BLOCK):
        timed(charge, name, replays)
    for n in range(BLOCK):
        timed(charge, f"fresh-{block}-{n}", fresh)
    for _ in range(BLOCK):
        timed(flush_twice, "", flushes)

print(
    json.dumps(
        {
            "replay": median(replays) / 1e3,
            "read": median(reads) / 1e3,
            "fresh": median(fresh) / 1e3,
            "flushes": median(flushes) / 1e3,
            "effects": len(names),
            "versions": f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        }
    )
)
