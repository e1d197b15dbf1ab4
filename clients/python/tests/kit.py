"""What the tests share. They speak to a real server."""

from __future__ import annotations

import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
import unittest
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Iterator, List, Optional
from urllib.parse import urlsplit

from pawl import Client, Worker

URL, TOKEN = os.environ["PAWL_URL"], os.environ["PAWL_TOKEN"]
DATABASE = os.environ.get("PAWL_TEST_APPLICATION", "")  # of an application on the server's PostgreSQL; empty on SQLite

SCRIPT = """import { workflow } from "pawl";
export default workflow({
  name: "NAME",
  topics: { "order.placed": {} },
  producers: { look: { publishes: ["order.placed"], schedule: { interval: "1h" }, handler: async () => {} } },
  consumers: {
    take: {
      subscribe: ["order.placed"],
      async prepare(ctx) {
        const list = await ctx.peek("order.placed", { limit: 10 });
        return { reservations: [{ topic: "order.placed", ids: list.map((e) => e.messageId) }], data: list.length };
      },
      next() {},
    },
  },
});
"""


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.pawl = Client(URL, TOKEN)
        self.addCleanup(self.pawl.close)

    def fresh_task(self, **definition: Any) -> str:
        name = f"t-{uuid.uuid4()}"
        self.pawl.declare(name, **definition)
        return name

    def fresh_workflow(self) -> str:
        name = f"w-{uuid.uuid4()}"
        self.pawl.request("PUT", f"/api/v1/workflows/{name}", body={"script": SCRIPT.replace("NAME", name)})
        return name

    def eventually(self, what: str, holds: Callable[[], Any], within: float = 30) -> None:
        end = time.monotonic() + within
        while time.monotonic() < end:
            if holds():
                return
            time.sleep(0.02)
        self.fail(f"did not happen: {what}")

    def ended(self, id: str) -> None:
        self.eventually(f"job {id} ended", lambda: self.state(id) in ("succeeded", "failed", "cancelled"))

    def state(self, id: str) -> str:
        return self.pawl.job(id)["state"]

    @contextmanager
    def working(self, task: str, do: Any = None, client: Optional[Client] = None, **options: Any) -> Iterator[Worker]:
        """Runs a worker while a test looks at what it does."""
        worker = Worker(client or self.pawl, task, do, **options)
        failed: List[BaseException] = []

        def run() -> None:
            try:
                worker.run()
            except BaseException as e:
                failed.append(e)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield worker
        finally:
            worker.stop()
            thread.join()
        self.assertEqual(failed, [])

    def client(self, url: str, token: str = TOKEN, **options: Any) -> Client:
        made = Client(url, token, **options)
        self.addCleanup(made.close)
        return made

    def serve(self, handle: Callable[[Request], None]) -> str:
        """A server of the test's own, which says whatever it likes: one connection for
        each request."""

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                request = Request(self.rfile, self.connection)
                if request.method:
                    try:
                        handle(request)
                    except OSError:
                        pass  # the client has left

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def proxy(self, rule: Callable[[Request], Any]) -> str:
        """Stands between a client and the real server. The rule may answer, or spoil,
        instead of passing on (True), or lose the answer of what was passed on."""

        def handle(request: Request) -> None:
            did = rule(request)
            if did is True:
                return
            at = urlsplit(URL)
            with socket.create_connection((at.hostname or "", at.port or 80)) as up:
                up.sendall(request.raw)
                while True:
                    part = up.recv(65536)
                    if not part:
                        return
                    if did != "lose":
                        request.connection.sendall(part)

        return self.serve(handle)

    def start(self, *args: str) -> Program:
        program = Program(*args)
        self.addCleanup(program.end)
        return program


class Request:
    def __init__(self, rfile: Any, connection: socket.socket) -> None:
        self.connection = connection
        lines, length = [], 0
        for line in iter(rfile.readline, b""):
            if line == b"\r\n":
                break
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
            if name.lower() != b"connection":
                lines.append(line)
        self.headers = {line.partition(b":")[0].decode().lower(): line.partition(b":")[2].decode().strip() for line in lines[1:]}
        self.method, self.path = (lines[0].decode().split(" ") + ["", ""])[:2] if lines else ("", "")
        self.body = rfile.read(length)
        self.raw = b"".join(lines) + b"Connection: close\r\n\r\n" + self.body

    def answer(self, status: int, body: str, kind: str = "application/json", headers: str = "") -> None:
        text = body.encode()
        head = f"HTTP/1.1 {status} So\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n{headers}\r\n"
        self.connection.sendall(head.encode() + text)

    def stream(self, text: str, kind: str = "text/event-stream") -> None:
        self.connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n{text}".encode())


class Program:
    """A program beside the tests, and what it says."""

    def __init__(self, *args: str) -> None:
        self.process = subprocess.Popen([sys.executable, "-u", str(Path(__file__).parent / "victim.py"), *args], stdout=subprocess.PIPE, text=True)
        self.lines: List[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as out:
            for line in out:
                self.lines.append(line)

    def said(self) -> str:
        return "".join(self.lines)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
