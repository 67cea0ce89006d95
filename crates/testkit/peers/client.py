"""Does what a plan says with the official Python client, and prints what came back as one document.

usage: client.py PLAN

PLAN is {"server": {"command": […]} or {"url": "…"}, "mode": "legacy" | "auto" | "2026-07-28", "steps": […]}; a step is
{"list": true} or {"tool": "…", "arguments": {…}, "meta": {…}}, and a list of steps is done all at once.
"""

import asyncio
import json
import os
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp_types import CreateMessageResult, ElicitResult, TextContent

plan = json.loads(sys.argv[1])


async def agree(context, params) -> ElicitResult:
    return ElicitResult(action="accept", content={"confirm": True})


async def word(context, params) -> CreateMessageResult:
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="in kind words"), model="script")


def server():
    if "url" in plan["server"]:
        return plan["server"]["url"]
    command, *arguments = plan["server"]["command"]
    return StdioServerParameters(command=command, args=arguments, env=dict(os.environ))


async def take(client, step):
    if isinstance(step, list):
        return await asyncio.gather(*(take(client, one) for one in step))
    progress = []

    async def advance(done, total, message) -> None:
        progress.append(message)

    try:
        if step.get("list"):
            result = await client.list_tools()
        else:
            result = await client.call_tool(
                step["tool"], step.get("arguments", {}), progress_callback=advance, meta=step.get("meta")
            )
    except MCPError as error:
        return {"error": {"code": error.code, "message": error.message}}
    return {**result.model_dump(mode="json", by_alias=True, exclude_none=True), "progress": progress}


async def main() -> None:
    mode = plan.get("mode", "auto")
    async with Client(server(), mode=mode, elicitation_callback=agree, sampling_callback=word) as client:
        results = [await take(client, step) for step in plan["steps"]]
        print(json.dumps({"version": client.protocol_version, "results": results}))


asyncio.run(main())
