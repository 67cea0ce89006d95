"""Times tool calls with the official Python client, over several ways to one server, in an order that is shuffled.

usage: measure.py PLAN

PLAN is {"ways": {name: command…}, "calls": N, "in_a_row": B, "together": C, "rounds": R}. Prints, for each way, the
median of each tool's latency in microseconds, once of B calls in a row and once where each call comes after one of
another way or tool ("charge" and "charge_mixed"), and the rate of `charge` with C calls at once.
"""

import asyncio
import json
import os
import statistics
import sys
from contextlib import AsyncExitStack
from random import seed, shuffle
from time import perf_counter

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

plan = json.loads(sys.argv[1])
TOOLS = ("charge", "get")
counter = iter(range(1 << 60))
seed(1)


async def call(client, tool: str) -> float:
    """No two calls are alike, so that each is a new intent."""
    k = f"{os.getpid()}-{next(counter)}"
    started = perf_counter()
    result = await client.call_tool(tool, {"k": k})
    took = perf_counter() - started
    assert result.content[0].text == k, result
    return took


async def rate(client, calls: int, together: int) -> float:
    places = iter(range(calls))

    async def caller() -> None:
        for _ in places:
            await call(client, "charge")

    started = perf_counter()
    await asyncio.gather(*(caller() for _ in range(together)))
    return calls / (perf_counter() - started)


async def latencies(clients, calls: int, in_a_row: int) -> dict:
    """The medians. The ways take turns, each for so many calls: what one leaves behind is felt by the first of the next
    alone, unless they take turns with every call."""
    times = {(name, tool): [] for name in clients for tool in TOOLS}
    order = list(times)
    for _ in range(calls // in_a_row):
        # Each should come after each other as often.
        shuffle(order)
        for name, tool in order:
            for _ in range(in_a_row):
                times[name, tool].append(await call(clients[name], tool))
    return {what: statistics.median(took) * 1e6 for what, took in times.items()}


async def main() -> None:
    async with AsyncExitStack() as stack:
        silent = stack.enter_context(open(os.devnull, "w"))
        clients = {}
        for name, (command, *arguments) in plan["ways"].items():
            parameters = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
            client = Client(stdio_client(parameters, errlog=silent), mode="legacy")
            clients[name] = await stack.enter_async_context(client)
            await clients[name].list_tools()
        # So that everything is warm, and the ledger is one that has been in use.
        for client in clients.values():
            await rate(client, 3 * plan["calls"], plan["together"])
        in_a_row = await latencies(clients, plan["calls"], plan["in_a_row"])
        mixed = await latencies(clients, plan["calls"], 1)
        rates = {name: [] for name in clients}
        for _ in range(plan["rounds"]):
            for name, client in clients.items():
                rates[name].append(await rate(client, plan["calls"], plan["together"]))
        found = {
            name: {
                **{tool: in_a_row[name, tool] for tool in TOOLS},
                **{f"{tool}_mixed": mixed[name, tool] for tool in TOOLS},
                "rate": statistics.median(rates[name]),
            }
            for name in clients
        }
        print(json.dumps(found))


asyncio.run(main())
