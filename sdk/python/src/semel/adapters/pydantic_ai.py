"""Pydantic AI: `Agent(model, output_type=[str, DeferredToolRequests], capabilities=[Guard()])`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.messages import ToolReturn
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_core import to_jsonable_python

from .._adapt import acall, aresolve
from .._errors import InDoubt, Refused, ReplyLost, SemelError
from ._ruling import question, ruling, unless_decided


@dataclass
class Guard(AbstractCapability[Any]):
    """Guards all tools of an agent. The run is the conversation.

    A call that meets a doubt is deferred, as one that needs approval is. Approved with a person's ruling as its
    metadata, it is answered from the record, or runs if the ruling is that it never did.
    """

    run: str | None = None

    # Hooks of other capabilities act on what a tool gave, so they stay outside of the record.
    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return _Guarded(toolset, self.run)


@dataclass
class _Guarded(WrapperToolset[Any]):
    run: str | None = None

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        async def act() -> Any:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)

        if tool.tool_def.tool_kind in ("tool-search", "capability-load"):
            return await act()  # the framework's own
        answer = ctx.tool_call_metadata if ctx.tool_call_approved else None
        while True:
            try:
                return await acall(
                    name,
                    tool_args,
                    act,
                    run=self.run or ctx.conversation_id,
                    call_id=ctx.tool_call_id,
                    refused=(ModelRetry, ToolFailed),  # the author's own word
                    pause=(ApprovalRequired, CallDeferred),
                    dump=_dump,
                    load=_load,
                )
            except InDoubt as doubt:
                decided = ruling(answer, doubt)
                if decided is not None:
                    with unless_decided():
                        await aresolve(**decided)
                elif ctx.tool_call_approved and not answer:
                    raise ToolFailed(str(doubt)) from doubt  # an approval alone decides nothing
                else:
                    raise ApprovalRequired(question(doubt, name, to_jsonable_python(tool_args))) from doubt
            except (SemelError, Refused) as error:
                if isinstance(error, ReplyLost) and error.value is not None:
                    return error.value  # it cannot be kept, but it is here
                raise ToolFailed(str(error)) from error


_tool_return = TypeAdapter(ToolReturn[Any])


def _dump(value: Any) -> Any:
    return to_jsonable_python(value)


def _load(data: Any) -> Any:
    whole = isinstance(data, dict) and data.get("kind") == "tool-return"
    return _tool_return.validate_python(data) if whole else data
