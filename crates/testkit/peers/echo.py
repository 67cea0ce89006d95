"""The smallest server there is, so that what is measured is the client and whoever stands in between.

Everything it does is to answer: `charge` and `get` echo their `k`, `charge_big` and `get_big` send megabytes.
"""

import json
import sys

NAMES = ("charge", "get", "charge_big", "get_big")
SCHEMA = {"type": "object", "properties": {"k": {"type": "string"}, "megabytes": {"type": "integer"}}}


def result(message) -> dict:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        about = {"name": "echo", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": about}
    if method == "tools/list":
        return {"tools": [{"name": name, "description": name, "inputSchema": SCHEMA} for name in NAMES]}
    if method == "tools/call":
        arguments = params["arguments"]
        words = "x" * (arguments["megabytes"] << 20) if "megabytes" in arguments else arguments["k"]
        return {"content": [{"type": "text", "text": words}], "isError": False}
    return {}


for line in sys.stdin.buffer:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
