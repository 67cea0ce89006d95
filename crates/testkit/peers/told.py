"""A server on stdio that does as it is told, without any SDK.

usage: told.py

It plays by `told.json` in its working directory, which it reads anew for each request:

    era       "session" (initialize alone, the default), "stateless" (server/discover alone) or "dual"
    versions  what server/discover says is supported
    tools     its capabilities.tools
    capabilities  what else it says that it can do
    pages     the listing: one text for each page, written as the result as it is
    listed    the listing is not given until this file is there
    silent    methods that are never answered
    beside    a text that stands behind the result in every answer, as it is
    methods   method: a text that answers it, written as the result as it is
    calls     tool: what a call does, with these members, all of them optional
        raw         a text, written as the result as it is; <made> is the id of the effect, <calls> their count so far
        error       the JSON-RPC error
        effect      false: it changes nothing
        dry         an argument that makes it change nothing, and say so
        until       the effect is there, and its answer waits until this file is
        steps       so many progress notifications after the effect, one more once the wait is over
        asks        a method: the client is asked, under an id of the server's own, and its answer waited for
        input       the first leg is answered with this input_required result; the one with inputResponses runs
        task        "2025" or "2026": answers with a handle of that era; `until` is when it ends, and
        ttl         for so many milliseconds the server promises to know it, and
        ends        how: "completed" (the default), "failed" or "cancelled"
        dies        true: the process ends after the effect

A server that is told `signals` (a list of names) appends each such signal that it gets to the world, and goes on.
Whatever stands in the file `say` is written out as it is before the next request is answered that is no greeting.
Each effect is a line at the end of the file that SEMEL_WORLD names; each message is one in SEMEL_HEARD, as it came.
"""

import json
import os
import signal
import sys
import threading
import time

WORLD, HEARD = os.environ["SEMEL_WORLD"], os.environ["SEMEL_HEARD"]
ALONE = threading.Lock()
count = 0
tasks: dict = {}
asked: dict = {}


def append(file: str, line: bytes) -> None:
    """In one write that other writers cannot split."""
    end = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(end, line)
    os.close(end)


def say(line: bytes) -> None:
    with ALONE:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()


def respond(message: dict, member: str, text: str) -> None:
    beside = told().get("beside", "")
    say(f'{{"jsonrpc": "2.0", "id": {json.dumps(message["id"])}, "{member}": {text}{beside}}}'.encode())


def told() -> dict:
    try:
        with open("told.json", encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def wait_for(file: str) -> None:
    while not os.path.exists(file):
        time.sleep(0.005)


def change(tool: str, arguments: dict) -> str:
    global count
    with ALONE:
        count += 1
        made = f"made-{os.getpid()}-{count}"
    append(WORLD, (json.dumps({"id": made, "pid": os.getpid(), "tool": tool, "arguments": arguments}) + "\n").encode())
    return made


def words(text: str) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}]})


def call(message: dict) -> None:
    params = message["params"]
    tool, arguments = params["name"], params.get("arguments") or {}
    does = told().get("calls", {}).get(tool, {})
    if "input" in does and "inputResponses" not in params:
        return respond(message, "result", json.dumps({"resultType": "input_required", **does["input"]}))
    if arguments.get(does.get("dry")):
        return respond(message, "result", words("would do: " + json.dumps(arguments, sort_keys=True)))
    made = "nothing" if does.get("effect") is False else change(tool, arguments)
    if does.get("dies"):
        os._exit(3)
    if "task" in does:
        return begin(message, made, does)
    waits = "until" in does or "asks" in does
    threading.Thread(target=finish, args=(message, made, does), daemon=True).start() if waits else finish(message, made, does)


def finish(message: dict, made: str, does: dict) -> None:
    token = message["params"].get("_meta", {}).get("progressToken")
    for step in range(does.get("steps", 0)):
        progress(token, step + 1)
    if "asks" in does:
        said = threading.Event()
        asked[made] = said
        say(json.dumps({"jsonrpc": "2.0", "id": made, "method": does["asks"], "params": {"of": made}}).encode())
        said.wait()
    if "until" in does:
        wait_for(does["until"])
        if "steps" in does:
            progress(token, does["steps"] + 1)
    if "error" in does:
        return respond(message, "error", json.dumps(does["error"]))
    raw = does.get("raw", words("done: <made>"))
    respond(message, "result", raw.replace("<made>", made).replace("<calls>", str(count)))


def progress(token, step: int) -> None:
    if token is not None:
        params = {"progressToken": token, "progress": step}
        say(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).encode())


def begin(message: dict, made: str, does: dict) -> None:
    tasks[made] = does
    if does["task"] == "2025":
        handle = {"task": {"taskId": made, "status": "working", "ttl": does.get("ttl", 60000), "pollInterval": does.get("poll", 1)}}
    else:
        handle = {"resultType": "task", "taskId": made, "status": "working", "ttlMs": does.get("ttl", 60000), "pollIntervalMs": does.get("poll", 1)}
    respond(message, "result", json.dumps(handle))


def task(message: dict) -> None:
    made = message["params"]["taskId"]
    if made not in tasks:
        return respond(message, "error", json.dumps({"code": -32602, "message": "no such task: " + made}))
    does = tasks[made]
    if message["method"] == "tasks/cancel":
        does["ends"] = "cancelled"
        open(does["until"], "w").close()
    result = json.loads(does.get("raw", words("done: <made>")).replace("<made>", made))
    if message["method"] == "tasks/result":
        return respond(message, "result", json.dumps(result))
    state = {"taskId": made, "status": "working"}
    if os.path.exists(does["until"]):
        state["status"] = does.get("ends", "completed")
        if does["task"] == "2026":
            state["result"] = result
            state["resultType"] = "complete"
        if state["status"] == "failed":
            state["error"] = does["error"]
            state["statusMessage"] = does["error"]["message"]
    respond(message, "result", json.dumps(state))


def listing(message: dict, plays: dict) -> None:
    if "listed" in plays:
        wait_for(plays["listed"])
    cursor = (message.get("params") or {}).get("cursor")
    pages = plays.get("pages", ['{"tools": []}'])
    respond(message, "result", pages[int(cursor) if cursor else 0])


def hello(message: dict, plays: dict) -> None:
    era, method = plays.get("era", "session"), message["method"]
    capabilities = {"tools": plays.get("tools", {"listChanged": True}), **plays.get("capabilities", {})}
    about = {"name": "told", "version": "1"}
    if method == "initialize" and era != "stateless":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": capabilities, "serverInfo": about}
        return respond(message, "result", json.dumps(result))
    if method == "server/discover" and era != "session":
        versions = plays.get("versions", ["2026-07-28"])
        result = {"resultType": "complete", "supportedVersions": versions, "capabilities": capabilities}
        return respond(message, "result", json.dumps(result))
    respond(message, "error", json.dumps({"code": -32601, "message": "no such method: " + method}))


def request(message: dict) -> None:
    plays, method = told(), message["method"]
    # A process that is only asked which era it speaks may come late, and does not take it from the one that is used.
    if method not in ("initialize", "server/discover") and os.path.exists("say"):
        with open("say", "rb") as file:
            said = file.read()
        os.remove("say")
        say(said.rstrip(b"\n"))
    if method in plays.get("silent", []):
        return
    if method in plays.get("methods", {}):
        respond(message, "result", plays["methods"][method])
    elif method in ("initialize", "server/discover"):
        hello(message, plays)
    elif method == "tools/list":
        threading.Thread(target=listing, args=(message, plays), daemon=True).start() if "listed" in plays else listing(message, plays)
    elif method == "tools/call":
        call(message)
    elif method == "subscriptions/listen":
        # It has no answer; whatever comes by it names it.
        named = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        params = {"_meta": named, "notifications": message["params"].get("notifications")}
        say(json.dumps({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}).encode())
    elif method.startswith("tasks/"):
        task(message)
    elif method == "ping":
        respond(message, "result", "{}")
    elif method == "told/surroundings":
        surroundings = {"cwd": os.getcwd(), "pid": os.getpid(), "environment": dict(os.environ)}
        respond(message, "result", json.dumps(surroundings))
    elif method == "told/write":
        os.write(2, message["params"]["stderr"].encode())
        respond(message, "result", "{}")
    elif method == "told/exit":
        os._exit(message["params"]["code"])
    else:
        respond(message, "error", json.dumps({"code": -32601, "message": "no such method: " + method}))


for name in told().get("signals", []):
    noted = (json.dumps({"signal": name}) + "\n").encode()
    signal.signal(signal.Signals[name], lambda *_, noted=noted: append(WORLD, noted))

for line in sys.stdin.buffer:
    append(HEARD, line)
    message = json.loads(line)
    if "method" not in message:
        if said := asked.get(message.get("id")):
            said.set()
    elif message.get("id") is not None:
        request(message)
    elif message["method"] == "tools/call":
        change(message["params"]["name"], message["params"].get("arguments") or {})
