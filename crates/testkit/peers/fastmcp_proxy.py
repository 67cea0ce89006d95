"""FastMCP's own proxy over stdio before a server on stdio: what a user would put in between instead.

usage: fastmcp_proxy.py COMMAND…
"""

import sys

from fastmcp.server import create_proxy

command, *arguments = sys.argv[1:]
servers = {"mcpServers": {"echo": {"command": command, "args": arguments}}}
create_proxy(servers, name="proxy").run(transport="stdio", show_banner=False)
