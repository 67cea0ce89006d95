"""A listener: checks each message with the official library, refuses the first few, and writes down the rest."""

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
            with open(os.environ["SEMEL_HEARD"], "a") as heard:
                heard.write(json.dumps(message) + "\n")
        self.send_response(204 if taken else REFUSAL)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Listener)
print(server.server_address[1], flush=True)
server.serve_forever()
