"""Stands before a real server on stdio and loses the answers to one of its tools.

usage: losing.py answer|call TOOL -- PROGRAM ARGUMENTS...

`answer`: the call is carried out, and its answer replaced by a gateway's error. `call`: the error is all that there is.
Each call of the tool that the server got is a line at the end of the file that SEMEL_WORLD names.
"""

import json
import os
import subprocess
import sys
import threading

lost, tool, command = sys.argv[1], sys.argv[2], sys.argv[4:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
ids = set()
ALONE = threading.Lock()


def say(line: bytes) -> None:
    with ALONE:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def gateway(id) -> bytes:
    error = {"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "bad gateway"}}
    return json.dumps(error).encode() + b"\n"


def answers() -> None:
    for line in server.stdout:
        id = json.loads(line).get("id")
        say(gateway(id) if id in ids else line)


threading.Thread(target=answers, daemon=True).start()
for line in sys.stdin.buffer:
    message = json.loads(line)
    if message.get("method") == "tools/call" and message["params"]["name"] == tool:
        if lost == "call":
            say(gateway(message["id"]))
            continue
        ids.add(message["id"])
        with open(os.environ["SEMEL_WORLD"], "ab") as world:
            world.write(json.dumps(message["params"]["arguments"]).encode() + b"\n")
    server.stdin.write(line)
    server.stdin.flush()
server.stdin.close()
server.wait()
