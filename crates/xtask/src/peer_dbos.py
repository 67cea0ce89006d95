"""DBOS on its embedded SQLite: a workflow per key with one step that does nothing.

usage: peer_dbos.py FILE CALLERS CALLS
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version

import pysqlite3
import pysqlite3.dbapi2

sys.modules["sqlite3"] = pysqlite3
sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from dbos import DBOS, SetWorkflowID  # noqa: E402  (must see the newer SQLite)

file, callers, calls = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{file}", "log_level": "ERROR"})
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


DBOS.launch()
for n in range(20):
    call(f"warm-{n}")
ran = 0
started = time.monotonic()
with ThreadPoolExecutor(callers) as pool:
    list(pool.map(call, (f"key-{n}" for n in range(calls))))
took = time.monotonic() - started
assert ran == calls, f"{ran} of {calls} ran"
print(json.dumps({"calls_per_second": calls / took, "version": version("dbos")}), flush=True)
DBOS.destroy()
