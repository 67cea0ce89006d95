"""A collector: takes OTLP over HTTP with JSON, reads it with the official message types, and writes down the spans."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REFUSES = int(sys.argv[1]) if len(sys.argv) > 1 else 0


class Collector(BaseHTTPRequestHandler):
    refused = 0

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if Collector.refused < REFUSES:
            Collector.refused += 1
            return self.answer(503)
        if self.path != "/v1/traces" or self.headers["content-type"] != "application/json":
            return self.answer(404)
        document = json.loads(body)
        # A member that the message does not have, or of another type, is an error here.
        json_format.ParseDict(document, ExportTraceServiceRequest())
        with open(os.environ["SEMEL_HEARD"], "a") as heard:
            for resource in document["resourceSpans"]:
                named = {a["key"]: a["value"]["stringValue"] for a in resource["resource"]["attributes"]}
                for scope in resource["scopeSpans"]:
                    for span in scope["spans"]:
                        span["service"] = named["service.name"]
                        span["authorization"] = self.headers.get("authorization")
                        heard.write(json.dumps(span) + "\n")
        self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
print(server.server_address[1], flush=True)
server.serve_forever()
