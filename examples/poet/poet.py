"""A graph behind a URL: python3 examples/poet/poet.py"""

import json
from http.server import BaseHTTPRequestHandler, HTTPServer

answers = {}  # by idempotency key: a question that is asked again gets the first answer


class Poet(BaseHTTPRequestHandler):
    def do_POST(self):
        run = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers["Idempotency-Key"]
        if key not in answers:
            topic = run["input"].get("topic", "nothing")
            answers[key] = {
                "ok": True,
                "output": {"poem": f"Of {topic} I sing, for {run['scheduledFor']} has come."},
                "usage": [{"unit": "poem", "model": "pencil", "inputTokens": 4, "outputTokens": 9, "costUsd": 0.0012}],
            }
        body = json.dumps(answers[key]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


HTTPServer(("127.0.0.1", 8098), Poet).serve_forever()
