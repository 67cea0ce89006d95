"""Google ADK: `LlmAgent(tools=[guard(charge), guard(McpToolset(…))], …)`."""

from __future__ import annotations

import copy
import inspect
from typing import Any

from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from .._adapt import acall, aresolve
from .._errors import InDoubt, InvalidCall, Refused, ReplyLost, SemelError
from ._ruling import question, ruling, unless_decided


def guard(tool: Any, run: str | None = None) -> Any:
    """The tool, the function, or all tools of the toolset, guarded. The run is the session.

    A call that meets a doubt requests a confirmation. Confirmed with a person's ruling as its payload, it is answered
    from the record, or runs if the ruling is that it never did.
    """
    if isinstance(tool, BaseToolset):
        toolset: Any = copy.copy(tool)

        async def get_tools(readonly_context: Any = None) -> list[BaseTool]:
            return [guard(one, run) for one in await tool.get_tools(readonly_context)]

        toolset.get_tools = get_tools
        return toolset
    inner = tool if isinstance(tool, BaseTool) else FunctionTool(tool)
    if inspect.isasyncgenfunction(getattr(inner, "func", None)):
        raise InvalidCall(f"{inner.name} streams, and a stream has no one result. Use semel.effect inside of it.")

    async def run_async(*, args: dict[str, Any], tool_context: ToolContext) -> Any:
        return await _run(inner, args, tool_context, run)

    guarded: Any = copy.copy(inner)
    guarded.run_async = run_async
    return guarded


async def _run(tool: BaseTool, args: dict[str, Any], context: ToolContext, run: str | None) -> Any:
    session, confirmation = context.session, context.tool_confirmation

    async def act() -> Any:
        result = await tool.run_async(args=args, tool_context=context)
        pauses = context.actions.requested_tool_confirmations, context.actions.requested_auth_configs
        if any(context.function_call_id in pause for pause in pauses):
            raise _Paused(result)
        # The framework makes results of errors too, those of MCP for one. Those are errors again.
        said = isinstance(result, dict) and (result.get("error") or (result.get("isError") and result))
        if str(said).startswith(f"Invoking `{tool.name}()` failed"):
            raise _NotCalled(result)  # for its arguments
        if said:
            raise RuntimeError(said)
        return result

    while True:
        try:
            return await acall(
                tool.name,
                args,
                act,
                run=run or f"{session.app_name}/{session.user_id}/{session.id}",
                call_id=context.function_call_id,
                refused=_NotCalled,
                pause=_Paused,
                dump=_dump,
            )
        except _Ended as ended:
            return ended.result
        except InDoubt as doubt:
            if confirmation is None:
                context.request_confirmation(hint=str(doubt), payload=question(doubt, tool.name, args))
                context.actions.skip_summarization = True
                return {"error": str(doubt)}
            decided = ruling(confirmation.payload if confirmation.confirmed else None, doubt)
            if decided is None:
                # An approval alone decides nothing. The framework does not ask twice for one call.
                return {"error": str(doubt)}
            with unless_decided():
                await aresolve(**decided)
        except (SemelError, Refused) as error:
            if isinstance(error, ReplyLost) and error.value is not None:
                return error.value  # it cannot be kept, but it is here
            return {"error": str(error)}


class _Ended(Exception):
    """The tool did not run to its end. The framework has a result for that."""

    def __init__(self, result: Any) -> None:
        super().__init__(str(result))
        self.result = result


class _Paused(_Ended):
    pass


class _NotCalled(_Ended):
    pass


def _dump(value: Any) -> Any:
    # The framework calls all but a dict "result". A model would come back as a dict.
    return value if isinstance(value, (dict, list, str, int, float)) or value is None else {"result": value}
