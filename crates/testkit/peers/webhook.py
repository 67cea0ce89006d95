"""A listener: checks each message with the official library, refuses the first few, and writes down the rest.

A refusal that is a redirect leads to another path of its own; whoever comes there is written down too."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook

PORT, REFUSES, REFUSAL = (int(word) for word in sys.argv[1:])
CHECK = Webhook(os.environ["HOOK_SECRET"])


class Listener(BaseHTTPRequestHandler):
    asked = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Listener.asked += 1
        # Raises, and so breaks the connection off, if the signature is wrong.
        message = CHECK.verify(body, dict(self.headers))
        taken = Listener.asked > REFUSES
        if taken:
            message["id"] = self.headers["webhook-id"]
            message["path"] = self.path
            self.note(message)
        self.send_response(204 if taken else REFUSAL)
        if 300 <= REFUSAL < 400 and not taken:
            self.send_header("location", f"http://127.0.0.1:{PORT}/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self):
        self.note({"path": self.path})
        self.send_response(204)
        self.end_headers()

    def note(self, message):
        with open(os.environ["SEMEL_HEARD"], "a") as heard:
            heard.write(json.dumps(message) + "\n")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Listener)
print(server.server_address[1], flush=True)
server.serve_forever()
