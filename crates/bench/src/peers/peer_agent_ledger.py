"""agent-ledger on PostgreSQL: a tool call per key, with a handler that does nothing.

usage: peer_agent_ledger.py SERVER CALLERS, then a number of calls a line
"""

import asyncio
import json
import signal
import sys
import time
from importlib.metadata import version

from agent_ledger import EffectLedger, EffectLedgerOptions, ToolCall
from agent_ledger.stores.postgres import SCHEMA_SQL, PostgresStore
from psycopg_pool import AsyncConnectionPool

place, callers = sys.argv[1], int(sys.argv[2])
# Whatever hangs, the bench goes on.
signal.alarm(600)
# 4 are slower; 10, 20 and 64 are alike.
CONNECTIONS = 20


async def main():
    server = f"{place} dbname=postgres"
    async with AsyncConnectionPool(server, min_size=CONNECTIONS, open=False) as pool:
        async with pool.connection() as connection:
            await connection.execute(SCHEMA_SQL)
            for setting in ("fsync", "synchronous_commit"):
                row = await (await connection.execute(f"SHOW {setting}")).fetchone()
                assert row == ("on",), f"{setting} is {row}"
        ledger = EffectLedger(EffectLedgerOptions(store=PostgresStore(pool=pool)))
        await turn(ledger, "warm", 200)
        print(json.dumps({"version": version("agent-ledger")}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            rate = await turn(ledger, f"at-{time.monotonic_ns()}", int(line))
            print(json.dumps({"calls_per_second": rate}), flush=True)


async def turn(ledger, series, calls):
    ran = 0
    keys = iter([f"{series}-{n}" for n in range(calls)])

    async def effect(_):
        nonlocal ran
        ran += 1
        return "r" * 200

    async def caller():
        for key in keys:
            await ledger.run(ToolCall(workflow_id=key, tool="charge", args={}), handler=effect)

    started = time.monotonic()
    await asyncio.gather(*(caller() for _ in range(callers)))
    took = time.monotonic() - started
    assert ran == calls, f"{ran} of {calls} ran"
    return calls / took


asyncio.run(main())
