"""A process that replaces the server of a candidate and fails in the way that $STUB names."""

import http.server
import json
import os
import sys
import time

kind = os.environ["STUB"]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if kind == "stop":
            os._exit(3)
        self.send_response(200 if kind == "list" else 500)
        self.end_headers()
        self.wfile.write(b"[]" if kind == "list" else b'{"error": "internal error: KeyError"}')

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
elif kind == "garbage":
    print("certainly!", flush=True)
    time.sleep(600)
elif kind != "nothing":
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    print(json.dumps({"url": url, "load_seconds": 1.0}), flush=True)
    server.serve_forever()
