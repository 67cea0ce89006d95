"""Strands: `Agent(model, tools=[charge], plugins=[Guard()])`."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

from strands.interrupt import InterruptException
from strands.middleware import ExecuteToolStage
from strands.plugins import Plugin
from strands.types.events import ToolResultEvent

from .._adapt import acall, aresolve
from .._errors import InDoubt, Refused, ReplyLost, SemelError
from ._ruling import question, ruling, unless_decided


class Guard(Plugin):
    """Guards all tools of an agent. The run is the session of its session manager.

    A doubt interrupts the agent. Resumed with a person's ruling, the tool is answered from the record, or runs if
    the ruling is that it never did.
    """

    name = "semel"

    def __init__(self, run: str | None = None) -> None:
        super().__init__()
        self.run = run

    def init_agent(self, agent: Any) -> None:
        agent.add_middleware(ExecuteToolStage.Wrap, self._execute)

    async def _execute(self, context: Any, next_fn: Callable[[Any], AsyncIterator[Any]]) -> AsyncIterator[Any]:
        use = context.tool_use
        events: list[Any] = []
        result: Any = None
        if context.tool is not None and context.tool.tool_type == "structured_output":
            async for event in next_fn(context):
                yield event  # the framework's own
            return

        async def act() -> Any:
            async for event in next_fn(context):
                events.append(event)
            return _ran(events)

        while result is None:
            try:
                result = await acall(
                    use["name"],
                    use["input"],
                    act,
                    run=self.run or _session_of(context.agent),
                    call_id=use["toolUseId"],
                    pause=(_Paused, InterruptException),
                    dump=lambda given: {**given, "toolUseId": ""},
                    load=_load,
                )
            except _Paused:
                break
            except InDoubt as doubt:
                asked = question(doubt, use["name"], use["input"])
                answer = context.interrupt(f"semel {doubt.effect_id} {asked['attempt']}", reason=asked).response
                decided = ruling(answer, doubt)
                if decided is None:
                    result = _told(doubt)  # an approval alone decides nothing
                else:
                    with unless_decided():
                        await aresolve(**decided)
            except (SemelError, Refused) as error:
                result = _told(error)
        for event in events:
            if not isinstance(event, ToolResultEvent):
                yield event
        if result is not None:
            yield ToolResultEvent(result | {"toolUseId": use["toolUseId"]})


def _session_of(agent: Any) -> str | None:
    # Without a manager, `agent.session_id` is another one in each process.
    return getattr(getattr(agent, "_session_manager", None), "session_id", None)


class _Paused(Exception):
    """The tool asks a person. The events say so."""


def _ran(events: list[Any]) -> Any:
    """The result. The framework makes results of errors, so those are errors again."""
    last = next((event for event in reversed(events) if isinstance(event, ToolResultEvent)), None)
    if last is None:
        raise _Paused
    if last.exception is None and last.tool_result["status"] != "error":
        return last.tool_result
    said = " ".join(one.get("text", "") for one in last.tool_result["content"])
    if last.exception is None:
        raise RuntimeError(said)
    if said.startswith(("Unknown tool: ", "Error: Validation failed for input parameters: ")):
        raise Refused(said)  # the tool was not called
    raise last.exception


def _told(error: Exception) -> Any:
    if isinstance(error, ReplyLost) and error.value is not None:
        return error.value  # it cannot be kept, but it is here
    return {"status": "error", "content": [{"text": str(error)}]}


def _load(data: Any) -> Any:
    if isinstance(data, dict) and data.keys() >= {"status", "content"}:
        return data
    # A person brought it, or a probe.
    return {"status": "success", "content": [{"text": data if isinstance(data, str) else json.dumps(data)}]}
