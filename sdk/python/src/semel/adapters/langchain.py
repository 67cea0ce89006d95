"""LangChain: `create_agent(model, tools, checkpointer=…, middleware=[Guard()])`.

Plain LangGraph: `ToolNode(tools, wrap_tool_call=wrap_tool_call, awrap_tool_call=awrap_tool_call)`.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.messages import BaseMessage, ToolMessage, message_to_dict, messages_from_dict
from langgraph.errors import GraphInterrupt
from langgraph.types import Command, interrupt

from .._adapt import acall, aresolve, call, resolve
from .._errors import InDoubt, Refused, ReplyLost, SemelError
from ._ruling import question, ruling, unless_decided

try:
    from langchain.agents.middleware import AgentMiddleware
except ImportError:  # a plain graph needs langgraph alone
    AgentMiddleware = object  # type: ignore[assignment, misc]


class Guard(AgentMiddleware):
    """Guards all tools of an agent. The run is the thread.

    A doubt interrupts the graph. Resumed with a person's ruling, the tool is answered from the record, or runs if
    the ruling is that it never did.
    """

    def __init__(self, run: str | None = None) -> None:
        super().__init__()
        self.run = run

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return wrap_tool_call(request, handler, run=self.run)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await awrap_tool_call(request, handler, run=self.run)


def wrap_tool_call(request: Any, handler: Callable[[Any], Any], *, run: str | None = None) -> Any:
    """Guards the tools of a `ToolNode` in a plain graph. The run is the thread."""
    tool = request.tool_call
    while True:
        try:
            return call(tool["name"], tool["args"], lambda: _ran(handler(request), tool), **_how(request, run))
        except InDoubt as doubt:
            decided = _ask(doubt, tool)
            with unless_decided():
                resolve(**decided)
        except (SemelError, Refused) as error:
            return _told(error, tool)


async def awrap_tool_call(request: Any, handler: Callable[[Any], Awaitable[Any]], *, run: str | None = None) -> Any:
    """`wrap_tool_call` for tasks."""
    tool = request.tool_call

    async def act() -> Any:
        return _ran(await handler(request), tool)

    while True:
        try:
            return await acall(tool["name"], tool["args"], act, **_how(request, run))
        except InDoubt as doubt:
            decided = _ask(doubt, tool)
            with unless_decided():
                await aresolve(**decided)
        except (SemelError, Refused) as error:
            return _told(error, tool)


def _how(request: Any, run: str | None) -> dict[str, Any]:
    thread = (request.runtime.config.get("configurable") or {}).get("thread_id")
    return {
        "run": run or (None if thread is None else str(thread)),
        "call_id": request.tool_call["id"],
        "pause": GraphInterrupt,
        "dump": _dump,
        "load": lambda data: _load(data, request.tool_call),
    }


def _ran(result: Any, tool: Any) -> Any:
    """The result. The tool node makes text of errors, so those are errors again."""
    if not isinstance(result, ToolMessage) or result.status != "error":
        return result
    said, name = str(result.content), tool["name"]
    not_called = (f"Error invoking tool '{name}' ", f"Error: {name} is not a valid tool", "Error: ToolInvocationError(")
    raise (Refused if said.startswith(not_called) else RuntimeError)(said)


def _ask(doubt: InDoubt, tool: Any) -> dict[str, Any]:
    while True:  # the earlier answers of this task come first, in their order; interrupt() raises after the last
        decided = ruling(interrupt(question(doubt, tool["name"], tool["args"])), doubt)
        if decided is not None:
            return decided


def _told(error: Exception, tool: Any) -> Any:
    if isinstance(error, ReplyLost) and isinstance(error.value, (ToolMessage, Command, list)):
        return error.value  # it cannot be kept, but it is here
    return ToolMessage(str(error), name=tool["name"], tool_call_id=tool["id"], status="error")


def _dump(value: Any) -> Any:
    if isinstance(value, BaseMessage):
        return {"__message__": message_to_dict(value)}
    if isinstance(value, Command):
        return {"__command__": {name: _dump(getattr(value, name)) for name in ("graph", "update", "resume", "goto")}}
    if isinstance(value, dict):
        return {name: _dump(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_dump(item) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise TypeError(f"a {type(value).__name__} in a Command")


def _load(data: Any, tool: Any) -> Any:
    """A record as what the tool node takes, under the id of this call."""
    back = _revive(data, tool["id"])
    if isinstance(back, (ToolMessage, Command)) or (isinstance(data, list) and back != data):
        return back
    # A person brought it, or a probe.
    text = back if isinstance(back, str) else json.dumps(data)
    return ToolMessage(text, name=tool["name"], tool_call_id=tool["id"])


def _revive(data: Any, call_id: str) -> Any:
    if isinstance(data, list):
        return [_revive(item, call_id) for item in data]
    if not isinstance(data, dict):
        return data
    if data.keys() == {"__message__"}:
        message = messages_from_dict([data["__message__"]])[0]
        if isinstance(message, ToolMessage):
            return message.model_copy(update={"tool_call_id": call_id, "id": None})
        return message
    back = {name: _revive(item, call_id) for name, item in data.items()}
    return Command(**back["__command__"]) if back.keys() == {"__command__"} else back
