# MCP: a tool whose answer is lost runs once; the client's user is asked, where the client can.
from collections.abc import Callable
from typing import Any

from mcp.server import MCPServer

from semel.adapters.mcp import guard


def server_of(act: Callable[[str], Any]) -> MCPServer:
    server = guard(MCPServer("billing"))

    @server.tool()
    def charge(customer: str) -> dict[str, str]:
        """Charges a customer."""
        return act(customer)

    return server
