"""An order service: POST /orders {"email", "item"} commits the order and its e-mail."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg

from pawl import sql


def place(email: str, item: str) -> dict:
    """Either both are committed, or none: there is no order without its e-mail."""
    with psycopg.connect(os.environ["SHOP_DATABASE"]) as tx:
        row = tx.execute("insert into orders (email, item) values (%s, %s) returning id", (email, item)).fetchone()
        job = sql.add_job(tx, "send-mail", {"order": row[0], "to": email, "item": item}, lane=email)
        return {"order": row[0], "job": job}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        try:
            asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            status, answer = 201, place(str(asked["email"]), str(asked["item"]))
        except (ValueError, KeyError, TypeError, psycopg.IntegrityError) as e:
            status, answer = 422, {"error": str(e)}
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


host, port = os.environ.get("SHOP_ADDR", "127.0.0.1:8101").split(":")
ThreadingHTTPServer((host, int(port)), Handler).serve_forever()
