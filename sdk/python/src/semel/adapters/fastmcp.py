"""FastMCP: `FastMCP("billing", middleware=[Guard()])`."""

from __future__ import annotations

from typing import Any

from fastmcp.exceptions import DisabledError, FastMCPError, NotFoundError, ToolError
from fastmcp.server.middleware import CallNext, Middleware, MiddlewareContext
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, TextContent

from ._mcp import Failed, Result, guarded


class Guard(Middleware):
    """Guards the tools of a server, except those with `readOnlyHint`.

    The run is the one that the client names in `_meta["dev.semel/run-id"]`, since a session does not outlive a
    restart. In doubt, a client that can ask its user (elicitation) asks; the tool does not run.
    """

    def __init__(self, run: str | None = None) -> None:
        self.run = run

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        call, here = context.message, context.fastmcp_context

        async def act() -> Result:
            try:
                result = await call_next(context)
            except ToolError as error:
                if error.__cause__ is not None:
                    raise  # a crash, in the framework's words, which may be "please retry"
                raise Failed(_failure(error)) from error
            except (FastMCPError, NotFoundError, DisabledError) as error:
                raise Failed(_failure(error)) from error  # the tool was not called
            if isinstance(result, InputRequiredToolResult):
                return result.input_required
            made = result.to_mcp_result()
            if isinstance(made, CallToolResult):
                return made
            content, structured = made if isinstance(made, tuple) else (made, None)
            return CallToolResult(content=content, structured_content=structured)

        tool = None if here is None else await here.fastmcp.get_tool(call.name)
        request = None if here is None else here.request_context
        result = await guarded(
            call.name,
            call.arguments or {},
            act,
            tool=None if tool is None else tool.to_mcp_tool(name=call.name),
            run=self.run,
            request=request,
            meta=None if request is None else request.meta,
            responses=None if here is None else here.input_responses,
        )
        if isinstance(result, InputRequiredResult):
            return InputRequiredToolResult(result)
        return ToolResult.from_mcp_result(result)


def _failure(error: Exception) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
