import sys

import pysqlite3
import pysqlite3.dbapi2

# The SQLite of older distributions lacks functions that DBOS's tables use by default.
sys.modules["sqlite3"] = pysqlite3
sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2

from dbos import DBOS, SetWorkflowID  # noqa: E402  # protects
from world import act  # noqa: E402

DBOS(config={"name": "bench", "system_database_url": "sqlite:///dbos.sqlite", "log_level": "CRITICAL"})  # protects


@DBOS.step()  # protects
def step(invoice: str) -> dict:
    return act(invoice)


@DBOS.workflow()  # protects
def pay(invoice: str) -> dict:  # protects
    return step(invoice)  # protects


def charge(invoice: str) -> dict:
    with SetWorkflowID(f"charge-{invoice}"):  # protects
        return pay(invoice)


DBOS.launch()  # protects
