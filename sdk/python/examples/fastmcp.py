# FastMCP: a tool whose answer is lost runs once; the client's user is asked, where the client can.
from collections.abc import Callable
from typing import Any

from fastmcp import FastMCP

from semel.adapters.fastmcp import Guard


def server_of(act: Callable[[str], Any]) -> FastMCP:
    server = FastMCP("billing", middleware=[Guard()])

    @server.tool
    def charge(customer: str) -> dict[str, str]:
        """Charges a customer."""
        return act(customer)

    return server
