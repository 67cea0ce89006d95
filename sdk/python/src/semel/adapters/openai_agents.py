"""OpenAI Agents: `Agent(tools=[guard(charge, run="order-42")], …)`."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable
from typing import Any

from agents import FunctionTool, ModelBehaviorError, RunContextWrapper
from agents.tool import (
    default_tool_error_function,
    resolve_function_tool_failure_error_function,
    set_function_tool_failure_error_function,
)
from agents.tool_context import ToolContext
from agents.util._approvals import evaluate_function_tool_approval

from .._adapt import acall, astate
from .._errors import InvalidCall, Refused, ReplyLost

Run = str | Callable[[RunContextWrapper[Any]], str | None] | None


def guard(tool: FunctionTool, run: Run = None) -> FunctionTool:
    """The tool, guarded. The run is the id of the session or conversation; unless given, it is that of `semel.run`.

    A call that would meet a doubt needs approval. Approved, it is answered from the record once the doubt is
    decided; the tool does not run.
    """
    if getattr(tool, "_is_agent_tool", False):
        raise InvalidCall(f"{tool.name} is an agent, which pauses and goes on by itself. Guard the tools of that agent.")
    # The framework's own handler makes text of an error inside of on_invoke_tool. Without it, the error arrives.
    inner = set_function_tool_failure_error_function(copy.copy(tool), None)

    async def invoke(context: ToolContext[Any], raw: str) -> Any:
        async def act() -> Any:
            try:
                return await inner.on_invoke_tool(context, raw)
            except ModelBehaviorError as error:
                if str(error).startswith(f"Invalid JSON input for tool {context.tool_name}"):
                    raise Refused(str(error)) from error  # the function was not called
                raise

        try:
            return await acall(
                tool.name, _arguments(raw), act, run=_run(run, context), call_id=context.tool_call_id, dump=lambda v: v
            )
        except Exception as error:
            if isinstance(error, ReplyLost) and error.value is not None:
                return error.value  # it cannot be kept, but it is here
            tell = resolve_function_tool_failure_error_function(guarded, context)
            if tell is None:
                raise
            said = tell(context, error)
            return await said if inspect.isawaitable(said) else said

    async def needs_approval(context: RunContextWrapper[Any], args: dict[str, Any], call_id: str) -> bool:
        own = await evaluate_function_tool_approval(tool, context, json.dumps(args), call_id)
        if own.outcome == "require_approval":
            return True
        return await astate(tool.name, args, _run(run, context)) in ("in_doubt", "held")

    guarded = copy.copy(tool)
    guarded.on_invoke_tool = invoke
    guarded.needs_approval = needs_approval
    if resolve_function_tool_failure_error_function(tool) is default_tool_error_function:
        set_function_tool_failure_error_function(guarded, _tell)
    return guarded


def _tell(_: RunContextWrapper[Any], error: Exception) -> str:
    return str(error)  # the framework's own words end in "Please try again."


def _arguments(raw: str) -> dict[str, Any]:
    try:
        arguments = json.loads(raw or "{}")
    except ValueError:
        arguments = raw
    return arguments if isinstance(arguments, dict) else {"input": raw}


def _run(run: Run, context: RunContextWrapper[Any]) -> str | None:
    return run(context) if callable(run) else run
