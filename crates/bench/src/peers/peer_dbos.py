"""DBOS on its embedded SQLite or on PostgreSQL: a workflow per key with one step that does nothing.

usage: peer_dbos.py URL CALLERS, then a number of calls a line
"""

import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import pysqlite3
import pysqlite3.dbapi2

sys.modules["sqlite3"] = pysqlite3
sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from dbos import DBOS, SetWorkflowID  # noqa: E402  (must see the newer SQLite)

url, callers = sys.argv[1], int(sys.argv[2])
# Whatever hangs, the bench goes on.
signal.alarm(600)
DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})
ran = 0


@DBOS.step()
def effect():
    global ran
    ran += 1
    return "r" * 200


@DBOS.workflow()
def guarded():
    return effect()


def call(key):
    with SetWorkflowID(key):
        guarded()


def turn(series, calls):
    global ran
    ran = 0
    started = time.monotonic()
    with ThreadPoolExecutor(callers) as pool:
        list(pool.map(call, (f"{series}-{n}" for n in range(calls))))
    took = time.monotonic() - started
    assert ran == calls, f"{ran} of {calls} ran"
    return calls / took


DBOS.launch()
turn("warm", 100)
print(json.dumps({"version": version("dbos")}), flush=True)
for line in sys.stdin:
    rate = turn(f"at-{time.monotonic_ns()}", int(line))
    print(json.dumps({"calls_per_second": rate}), flush=True)
DBOS.destroy()
