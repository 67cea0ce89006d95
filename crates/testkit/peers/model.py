"""A model on loopback with a script instead of a mind, in the shape of two providers' streaming APIs.

usage: model.py TOOL ARGUMENTS [TIMES]        prints `listening PORT`

It calls the offered tool whose name ends in TOOL, once or TIMES times, and is content with whatever comes back. What it
saw come back is one line each at the end of the file that SEMEL_SEEN names.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOOL, ARGUMENTS = sys.argv[1], sys.argv[2]
TIMES = int(sys.argv[3]) if len(sys.argv) > 3 else 1


def offered(tools, prefix=""):
    """(namespace, name) of every tool that is offered, however deep."""
    for tool in tools or []:
        if "tools" in tool:
            yield from offered(tool["tools"], tool.get("name", ""))
        elif "name" in tool:
            yield prefix, tool["name"]


def wanted(body):
    return next((tool for tool in offered(body.get("tools")) if tool[1].endswith(TOOL)), None)


def saw(what) -> None:
    with open(os.environ["SEMEL_SEEN"], "a") as seen:
        seen.write(json.dumps(what) + "\n")


def messages(body):
    """Events of `POST /v1/messages`."""
    results = [
        part
        for message in body["messages"] if isinstance(message["content"], list)
        for part in message["content"] if part.get("type") == "tool_result"
    ]
    tool = wanted(body)
    if results:
        saw(results)
    if tool and len(results) < TIMES:
        block = {"type": "tool_use", "id": f"toolu_script_{len(results) + 1}", "name": tool[1], "input": {}}
        delta, why = {"type": "input_json_delta", "partial_json": ARGUMENTS}, "tool_use"
    else:
        block, delta, why = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}, "end_turn"
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": [],
             "stop_reason": None, "stop_sequence": None, "usage": usage}
    if not body.get("stream"):
        said = {**block, "input": json.loads(ARGUMENTS)} if why == "tool_use" else {"type": "text", "text": "Done."}
        return {**start, "content": [said], "stop_reason": why}
    return [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def responses(body):
    """Events of `POST /v1/responses`."""
    results = [item for item in body["input"] if item.get("type") == "function_call_output"]
    tool = wanted(body)
    if results:
        saw(results)
    if tool and len(results) < TIMES:
        number = len(results) + 1
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_script_{number}", "name": tool[1],
                "arguments": ARGUMENTS, "status": "completed", **({"namespace": tool[0]} if tool[0] else {})}
    else:
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}]}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2,
             "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    done = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**done, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]


class Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words) -> None:
        pass

    def reply(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.reply(404, "application/json", b"{}")

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        shape = {"/v1/messages": messages, "/v1/responses": responses}.get(path)
        if shape is None:
            return self.reply(404, "application/json", b"{}")
        said = shape(json.loads(body))
        if isinstance(said, dict):
            return self.reply(200, "application/json", json.dumps(said).encode())
        events = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in said)
        self.reply(200, "text/event-stream", events.encode())


http = ThreadingHTTPServer(("127.0.0.1", 0), Model)
http.daemon_threads = True
print("listening", http.server_address[1], flush=True)
http.serve_forever()
