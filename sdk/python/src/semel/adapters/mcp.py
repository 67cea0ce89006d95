"""The official MCP SDK, version 2: `server = guard(MCPServer("billing"))`."""

from __future__ import annotations

from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, TextContent

from ._mcp import Failed, Result, guarded


def guard(server: MCPServer[Any], run: str | None = None) -> MCPServer[Any]:
    """The server, with its tools guarded, except those with `readOnlyHint`.

    The run is the one that the client names in `_meta["dev.semel/run-id"]`, since a session does not outlive a
    restart. In doubt, a client that can ask its user (elicitation) asks; the tool does not run.
    """
    # Not a middleware: to that, a crash and a failure that the author reports are the same text.
    inner = server.call_tool

    async def call_tool(name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None) -> Result:
        async def act() -> Result:
            try:
                return await inner(name, arguments, context)
            except UnexpectedToolError as crash:
                raise RuntimeError(repr(crash.__cause__)) from crash
            except ToolError as error:  # the author's own word, or arguments that do not fit
                raise Failed(CallToolResult(content=[TextContent(text=str(error))], is_error=True)) from error

        request = None if context is None else context.request_context
        return await guarded(
            name,
            arguments,
            act,
            tool=next((tool for tool in await server.list_tools() if tool.name == name), None),
            run=run,
            request=request,
            meta=None if request is None else (request.params or {}).get("_meta"),
            responses=None if context is None else context.input_responses,
        )

    server.call_tool = call_tool  # type: ignore[method-assign]
    return server
