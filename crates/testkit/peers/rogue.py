"""A server without an SDK that misbehaves as its tools are named, over stdio or HTTP.

usage: rogue.py                     serves its own stdin and stdout
       rogue.py http                prints `listening PORT` and serves `/mcp` on loopback, with sessions

Each effect is one line at the end of the file that SEMEL_WORLD names; each message that comes in, one line at the end
of the file that SEMEL_HEARD names, if any. Over HTTP it looks for files in its working directory:

    forget      it forgets all sessions, and then this file
    closed      it begins no session
    speaks      the version that it agrees on in new sessions
    deaf        it does not take the notice that a session has begun
    unknown     the status, and after a space the words, with which it refuses a session that it does not know
    streams     it offers a stream for its own messages, which names its session
"""

import json
import os
import socket
import struct
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WORLD = os.environ["SEMEL_WORLD"]


def append(path: str, line: dict) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(file, (json.dumps(line) + "\n").encode())
    os.close(file)


def change(name: str, arguments: dict) -> str:
    made = "ch_" + uuid.uuid4().hex
    append(WORLD, {"id": made, "pid": os.getpid(), "tool": name, **arguments})
    return f"{made} for {arguments.get('customer')}"


def hear(message) -> None:
    if heard := os.environ.get("SEMEL_HEARD"):
        append(heard, message)


def wait_for(path: str) -> None:
    while not os.path.exists(path):
        time.sleep(0.01)


def text(words: str) -> dict:
    return {"content": [{"type": "text", "text": words}], "isError": False}


def answer(message, result) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()


class Stdio:
    """Tools whose misbehaviour lies in the bytes. All of them change the world first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.asked: dict = {}
        self.tasks: dict = {}

    def say(self, *lines: bytes) -> None:
        with self.lock:
            for line in lines:
                sys.stdout.buffer.write(line + b"\n")
            sys.stdout.buffer.flush()

    def charge(self, message, made, arguments):
        self.say(answer(message, text("charged: " + made)))

    def charge_among_stray_lines(self, message, made, arguments):
        right = answer(message, text("charged: " + made))
        self.say(b"Starting up...", b"", b"{not json", b"[]", b"42", b'"words"', b"null", right, b"DEBUG done")

    def charge_answered_twice(self, message, made, arguments):
        self.say(answer(message, text("first: " + made)), answer(message, text("second: " + made)))

    def charge_refused_then_answered(self, message, made, arguments):
        error = {"code": -32602, "message": "invalid arguments: no such customer"}
        refused = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
        if "until" not in arguments:
            return self.say(refused, answer(message, text("charged: " + made)))
        self.say(refused)
        wait_for(arguments["until"])
        self.say(answer(message, text("charged: " + made)))

    def charge_answered_under_wrong_ids_first(self, message, made, arguments):
        for wrong in ("no-such-id", 987654321, None, [1], str(message["id"]) + "0"):
            self.say(answer({"id": wrong}, text("somebody else's: " + made)))
        self.say(answer(message, text("charged: " + made)))

    def charge_answered_under_guessed_ids_first(self, message, made, arguments):
        """Whoever stands in between may number requests anew, so a guess may be right by accident."""
        for guess in range(30):
            if guess != message["id"]:
                self.say(answer({"id": guess}, text("somebody else's: " + made)))
        self.say(answer(message, text("charged: " + made)))

    def charge_answered_under_a_wrong_id(self, message, made, arguments):
        self.say(answer({"id": "no-such-id"}, text("lost: " + made)))

    def charge_not_answered(self, message, made, arguments):
        pass

    def charge_answered_late(self, message, made, arguments):
        wait_for(arguments["until"])
        self.say(answer(message, text("late: " + made)))

    def charge_in_invalid_utf8(self, message, made, arguments):
        right = answer(message, text("charged: " + made + " <here>"))
        self.say(right.replace(b"<here>", b"\xff\xfe\xc3"))

    def charge_with_a_giant_frame(self, message, made, arguments):
        self.say(answer(message, text("x" * (arguments["megabytes"] << 20))))

    def charge_half_answered(self, message, made, arguments):
        half = answer(message, text("charged: " + made))
        sys.stdout.buffer.write(half[: len(half) // 2])
        sys.stdout.buffer.flush()
        os._exit(3)

    def charge_then_die(self, message, made, arguments):
        os._exit(3)

    def charge_in_odd_bytes(self, message, made, arguments):
        """Numbers, escapes, spaces and members that a re-typing proxy would lose."""
        odd = b'{ "content":[{"type":"text","text":"caf\\u00e9 \\ud83d\\ude00 <made>","novel":true}],'
        odd += b'"structuredContent":{"big":123456789012345678901234567890,"exact":1.10,"tiny":1e-400},'
        odd += b'"novel":{"b":1,"a":2},"isError":false ,"_meta":{"example.org/kept":[1.0]}}'
        head = b'{"jsonrpc":"2.0","id":' + json.dumps(message["id"]).encode() + b',"result":'
        self.say(head + odd.replace(b"<made>", made.encode()) + b"}")

    def charge_against_its_schema(self, message, made, arguments):
        """Its schema promises an object with a number `total`."""
        self.say(answer(message, {**text("charged: " + made), "structuredContent": {"total": "many"}}))

    def charge_though_it_reads(self, message, made, arguments):
        """Its annotations say that it only reads."""
        self.say(answer(message, text("charged: " + made)))

    def charge_after_a_question(self, message, made, arguments):
        """Asks the client under the very id that the client's own request has, and waits for the answer."""
        said = threading.Event()
        self.asked[json.dumps(message["id"])] = said
        self.say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "method": "ping"}).encode())
        said.wait()
        self.say(answer(message, text("charged, and heard: " + made)))

    def charge_as_a_task(self, message, made, arguments):
        """Answers with a handle; the task is done once the file `until` is there."""
        self.tasks[made] = arguments["until"]
        self.say(answer(message, {"task": self.task(made)}))

    def task(self, made) -> dict:
        status = "completed" if os.path.exists(self.tasks[made]) else "working"
        return {"taskId": made, "status": status, "ttl": 60000, "pollInterval": 100}

    def charge_with_words_of_refusal(self, message, made, arguments):
        self.say(answer(message, {**text("invalid amount: " + made), "isError": True}))

    def charge_with_an_unclear_error(self, message, made, arguments):
        self.say(answer(message, {**text("something went wrong: " + made), "isError": True}))

    def charge_with_an_unexpected_error(self, message, made, arguments):
        self.say(answer(message, {**text("An unexpected error occurred: " + made), "isError": True}))

    def charge_with_an_unknown_error(self, message, made, arguments):
        self.say(answer(message, {**text("Unknown error, please check your account: " + made), "isError": True}))

    def charge_with_a_timeout_error(self, message, made, arguments):
        self.say(answer(message, {**text("gateway timeout: " + made), "isError": True}))

    def charge_with_a_protocol_error(self, message, made, arguments):
        error = {"code": -32603, "message": "internal error"}
        self.say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())

    @classmethod
    def tools(cls) -> list:
        schema = {"type": "object", "properties": {"customer": {"type": "string"}}}
        names = [name for name in vars(cls) if name.startswith("charge")]
        tools = {name: {"name": name, "description": name, "inputSchema": schema} for name in names}
        total = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}
        tools["charge_against_its_schema"]["outputSchema"] = total
        tools["charge_though_it_reads"]["annotations"] = {"readOnlyHint": True, "idempotentHint": True}
        return list(tools.values())

    def serve(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            hear(message)
            method, params = message.get("method"), message.get("params", {})
            if method is None:
                if said := self.asked.get(json.dumps(message.get("id"))):
                    said.set()
            elif "id" not in message:
                continue
            elif method == "tools/call":
                arguments = params.get("arguments", {})
                made = change(params["name"], arguments)
                tool = getattr(self, params["name"])
                threading.Thread(target=tool, args=(message, made, arguments), daemon=True).start()
            elif method == "tasks/get":
                self.say(answer(message, self.task(params["taskId"])))
            elif method == "tasks/result":
                self.say(answer(message, text("charged as a task: " + params["taskId"])))
            else:
                self.say(common(message, method, params, self.tools()))


def common(message, method, params, tools) -> bytes:
    if method == "initialize":
        about = {"name": "rogue", "version": "1"}
        version = params.get("protocolVersion", "2025-06-18")
        return answer(message, {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about})
    if method == "tools/list":
        return answer(message, {"tools": tools})
    if method == "ping":
        return answer(message, {})
    error = {"code": -32601, "message": "no such method"}
    return json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()


class Http(BaseHTTPRequestHandler):
    """Tools whose misbehaviour lies in the connection: once each, then they behave."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    sessions: set = set()
    forgetting = threading.Lock()
    misbehaved: set = set()
    names = (
        "charge", "charge_then_404", "charge_then_reset", "charge_then_502", "charge_then_503",
        "charge_then_cut_stream", "charge_in_a_stream", "charge_answered_late", "list_charges",
        "charge_refused_then_answered",
    )

    def log_message(self, *words) -> None:
        pass

    def reply(self, status: int, body: bytes = b"", kind: str = "application/json", **headers) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        session = self.headers.get("Mcp-Session-Id")
        hear({"method": "GET", "session": session})
        if not os.path.exists("streams"):
            return self.reply(405)
        if session not in self.sessions:
            return self.reply(404)
        self.begin_stream()
        named = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": session}}
        self.wfile.write(b"retry: 10\ndata: " + json.dumps(named).encode() + b"\n\n")
        while session in self.sessions:
            time.sleep(0.01)

    def begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.close_connection = True

    def do_DELETE(self) -> None:
        hear({"method": "DELETE", "session": self.headers.get("Mcp-Session-Id")})
        self.sessions.discard(self.headers.get("Mcp-Session-Id"))
        self.reply(200)

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        hear(message)
        with self.forgetting:
            if os.path.exists("forget"):
                self.sessions.clear()
                os.remove("forget")
        method, params = message.get("method"), message.get("params", {})
        session = self.headers.get("Mcp-Session-Id")
        if method == "initialize" and os.path.exists("closed"):
            return self.reply(503, b"closed for today")
        if method == "initialize":
            if os.path.exists("speaks"):
                with open("speaks", encoding="utf-8") as file:
                    params["protocolVersion"] = file.read()
            session = uuid.uuid4().hex
            self.sessions.add(session)
            return self.reply(200, common(message, method, params, []), Mcp_Session_Id=session)
        if session not in self.sessions and os.path.exists("unknown"):
            with open("unknown", encoding="utf-8") as file:
                status, words = file.read().split(" ", 1)
            error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": words}}
            return self.reply(int(status), json.dumps(error).encode())
        if session not in self.sessions:
            return self.reply(404 if session else 400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}')
        if method == "notifications/initialized" and os.path.exists("deaf"):
            return self.reply(503, b"not now")
        if "id" not in message:
            return self.reply(202)
        if method in ("resources/subscribe", "logging/setLevel"):
            return self.reply(200, answer(message, {}))
        if method == "tools/call":
            return self.call(message, params["name"], params.get("arguments", {}), session)
        schema = {"type": "object", "properties": {"customer": {"type": "string"}}}
        tools = [{"name": name, "description": name, "inputSchema": schema} for name in self.names]
        self.reply(200, common(message, method, params, tools))

    def call(self, message, name, arguments, session) -> None:
        if name == "list_charges":
            with open(WORLD, "a+", encoding="utf-8") as file:
                file.seek(0)
                charges = json.dumps({"charges": [json.loads(line) for line in file]})
            return self.reply(200, answer(message, text(charges)))
        right = answer(message, text("charged: " + change(name, arguments)))
        first = name not in self.misbehaved
        self.misbehaved.add(name)
        if name == "charge_in_a_stream":
            return self.reply(200, b"event: message\ndata: " + right + b"\n\n", "text/event-stream")
        if name == "charge_refused_then_answered":
            error = {"code": -32602, "message": "invalid arguments: no such customer"}
            refused = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
            self.begin_stream()
            if arguments.get("alone"):
                self.wfile.write(b"data: " + refused + b"\n\n")
                return None
            if "until" not in arguments:
                self.wfile.write(b"data: " + refused + b"\n\ndata: " + right + b"\n\n")
                return None
            self.wfile.write(b"data: " + refused + b"\n\n")
            wait_for(arguments["until"])
            self.wfile.write(b"data: " + right + b"\n\n")
            return None
        if name == "charge_answered_late":
            wait_for(arguments["until"])
        elif first and name == "charge_then_404":
            self.sessions.discard(session)
            return self.reply(404, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no session"}}')
        elif first and name == "charge_then_reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
            return None
        elif first and name in ("charge_then_502", "charge_then_503"):
            return self.reply(int(name[-3:]), b"no")
        elif first and name == "charge_then_cut_stream":
            self.begin_stream()
            self.wfile.write(b": nothing follows\n\n")
            return None
        self.reply(200, right)


if sys.argv[1:] == ["http"]:
    http = ThreadingHTTPServer(("127.0.0.1", 0), Http)
    http.daemon_threads = True
    print("listening", http.server_address[1], flush=True)
    http.serve_forever()
else:
    Stdio().serve()
