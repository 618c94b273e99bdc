"""A process that replaces the server of a candidate and fails in the way that $STUB names."""

import http.server
import json
import os
import sys
import time

kind = os.environ["STUB"]
ANSWERS = {
    "list": (200, []),
    "refuse": (500, {"error": "internal error: KeyError"}),
    "lacks": (200, {"metadata": {"signature_def": {"signature_def": {"predict_text": {}}}}}),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = ANSWERS[kind]
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


if kind == "abort":
    print("F tensorflow/core: Check failed: size >= 0\n*** Begin stack\n@ 0x1", file=sys.stderr)
    sys.stderr.flush()
    os.abort()
elif kind == "raise":
    raise ValueError("no weights\nfor it")
elif kind == "hang":
    time.sleep(600)
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
url = f"http://127.0.0.1:{server.server_port}"
print(json.dumps({"url": url, "load_seconds": 1.0}), flush=True)
server.serve_forever()
