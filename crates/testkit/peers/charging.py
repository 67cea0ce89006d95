"""A server that charges customers, with the official Python SDK, over stdio or HTTP and for both eras.

usage: charging.py            serves its own stdin and stdout
       charging.py http       prints `listening PORT` and serves `/mcp` on loopback

Each effect is one line at the end of the file that SEMEL_WORLD names: what a test counts.
"""

import json
import os
import socket
import sys
import uuid
from pathlib import Path
from typing import Annotated

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp_types import CreateMessageResult, SamplingMessage, TextContent, ToolAnnotations
from pydantic import BaseModel

WORLD = os.environ["SEMEL_WORLD"]
server = MCPServer("charging", log_level="ERROR")


def change(**what) -> str:
    """Changes the world, in one write that other writers cannot split, and returns a new id."""
    made = "ch_" + uuid.uuid4().hex
    world = os.open(WORLD, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(world, (json.dumps({"id": made, "pid": os.getpid(), **what}) + "\n").encode())
    os.close(world)
    return made


class Charge(BaseModel):
    id: str
    customer: str
    amount: int


class Charges(BaseModel):
    charges: list[Charge]


class Confirmation(BaseModel):
    confirm: bool


@server.tool(structured_output=False)
def charge(customer: str, amount: int, note: str = "") -> str:
    """Charges a customer."""
    return "charged: " + change(tool="charge", customer=customer, amount=amount, note=note)


@server.tool()
def charge_structured(customer: str, amount: int) -> Charge:
    """Charges a customer and says so in a structure."""
    return Charge(id=change(tool="charge_structured", customer=customer, amount=amount), customer=customer, amount=amount)


@server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
def get_charges() -> str:
    """All that was ever charged."""
    return Path(WORLD).read_text() if Path(WORLD).exists() else ""


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_charges() -> Charges:
    """All charges, in a structure."""
    lines = [json.loads(line) for line in get_charges().splitlines()]
    return Charges(charges=[Charge(**{name: line[name] for name in Charge.model_fields}) for line in lines])


@server.tool(structured_output=False)
async def slow_charge(customer: str, amount: int, until: str) -> str:
    """Charges a customer at once, and answers when the file `until` is there."""
    made = change(tool="slow_charge", customer=customer, amount=amount)
    while not os.path.exists(until):
        await anyio.sleep(0.01)
    return "charged slowly: " + made


@server.tool(structured_output=False)
def die_after_charge(customer: str, amount: int) -> str:
    """Charges a customer and ends the process without an answer."""
    change(tool="die_after_charge", customer=customer, amount=amount)
    os._exit(3)


@server.tool(structured_output=False)
def append_note(note: str) -> str:
    """Appends a note."""
    return "appended: " + change(tool="append_note", note=note)


@server.tool(structured_output=False, annotations=ToolAnnotations(read_only_hint=True))
def big_result(megabytes: int) -> str:
    """So many megabytes of text."""
    return "x" * (megabytes << 20)


@server.tool(structured_output=False)
async def charge_with_progress(customer: str, amount: int, context: Context) -> str:
    """Charges a customer in three steps."""
    await context.report_progress(1, 3, "asked")
    made = change(tool="charge_with_progress", customer=customer, amount=amount)
    await context.report_progress(2, 3, "charged")
    await context.report_progress(3, 3, "written")
    return "charged in steps: " + made


def confirmation(customer: str) -> Elicit[Confirmation]:
    return Elicit(f"Charge {customer}?", Confirmation)


@server.tool(structured_output=False)
def charge_if_confirmed(customer: str, amount: int, said: Annotated[Confirmation, Resolve(confirmation)]) -> str:
    """Asks the user, then charges a customer."""
    if not said.confirm:
        return "not charged"
    return "charged: " + change(tool="charge_if_confirmed", customer=customer, amount=amount)


def wording(customer: str) -> Sample:
    question = TextContent(type="text", text=f"Word a note for {customer}")
    return Sample([SamplingMessage(role="user", content=question)], max_tokens=50)


@server.tool(structured_output=False)
def append_sampled_note(customer: str, worded: Annotated[CreateMessageResult, Resolve(wording)]) -> str:
    """Lets the client's model word a note, then appends it."""
    return "appended: " + change(tool="append_sampled_note", customer=customer, note=worded.content.text)


def serve_http() -> None:
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    print("listening", listener.getsockname()[1], flush=True)
    application = server.streamable_http_app(host="127.0.0.1")
    uvicorn.Server(uvicorn.Config(application, log_level="error")).run(sockets=[listener])


serve_http() if sys.argv[1:] == ["http"] else server.run("stdio")
