from __future__ import annotations

import json
import logging
import socket
import threading
import time
from typing import Any, List

from pawl import PawlError, Worker

from .kit import TOKEN, Case, Request


class TestHostile(Case):
    def hostile(self, handle: Any, **options: Any) -> Any:
        return self.client(self.serve(handle), "secret-token", **options)

    def fails(self, code: str, call: Any, *args: Any, **more: Any) -> PawlError:
        with self.assertRaises(PawlError) as e:
            call(*args, **more)
        self.assertEqual(e.exception.code, code, e.exception)
        return e.exception

    def test_answers_that_are_nonsense_are_errors_of_their_own(self) -> None:
        for body in ("", "<html>", "[]", "null", "7", '"text"', "{", "[" * 100_000, "\ud800".encode("utf-8", "surrogatepass").decode("latin-1")):
            self.fails("strange", self.hostile(lambda r, body=body: r.answer(200, body)).job, "1")
        self.fails("strange", self.hostile(lambda r: r.answer(200, '{"items": [1], "nextCursor": "again"}')).jobs)
        self.fails("strange", self.hostile(lambda r: r.answer(200, '{"items": {}}')).jobs)
        self.assertEqual(self.fails("strange", self.hostile(lambda r: r.answer(400, "{not", "application/problem+json")).job, "1").status, 400)
        odd = json.dumps({"code": "conflict", "detail": 7, "errors": [None, 3]})
        self.fails("conflict", self.hostile(lambda r: r.answer(409, odd, "application/problem+json")).job, "1")
        for raw in (b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 99999 no\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
            self.fails("unreachable", self.hostile(lambda r, raw=raw: r.connection.sendall(raw), retries=0).job, "1")

    def test_what_fails_for_a_while_is_asked_again_with_the_same_key(self) -> None:
        keys: List[Any] = []

        def handle(r: Request) -> None:
            keys.append(r.headers.get("idempotency-key"))
            if len(keys) == 2:
                r.answer(503, "busy", "text/plain", "Retry-After: 0\r\n")
            if len(keys) == 3:
                r.answer(201, '{"id": "1"}')

        self.assertEqual(self.hostile(handle).enqueue("log")["id"], "1")
        self.assertEqual((len(keys), len(set(keys))), (3, 1))
        self.assertTrue(keys[0])

    def test_what_is_not_safe_to_repeat_or_was_refused_is_not_sent_again(self) -> None:
        seen: List[str] = []

        def handle(r: Request) -> None:
            seen.append(r.method + " " + r.path)
            if r.path.endswith("/1"):
                r.answer(500, '{"code": "internal", "requestId": "r-1"}', "application/problem+json")
            if r.path.endswith("/2"):
                r.answer(404, '{"code": "not_found"}', "application/problem+json")

        c = self.hostile(handle)
        self.fails("unreachable", c.cancel, "9")
        e = self.fails("internal", c.job, "1")
        self.assertEqual(e.request_id, "r-1")
        self.assertIn("r-1", str(e))
        self.fails("not_found", c.job, "2")
        self.assertEqual(len(seen), 3, seen)

    def test_a_server_that_hangs_or_trickles_is_left_in_time(self) -> None:
        over = threading.Event()
        self.addCleanup(over.set)

        def trickle(head: bytes, drop: bytes) -> Any:
            def handle(r: Request) -> None:
                r.connection.sendall(head)
                while not over.wait(0.02):
                    r.connection.sendall(drop)
            return handle

        ways = [lambda r: over.wait(30), trickle(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n", b" "), trickle(b"HTTP/1.1 200 OK\r\nX-Long: ", b"x")]
        for handle in ways:
            began = time.monotonic()
            self.fails("unreachable", self.hostile(handle, timeout=0.3).enqueue, "log")
            self.assertLess(time.monotonic() - began, 5)

    def test_redirects_do_not_carry_the_token_to_another_host(self) -> None:
        stolen: List[Any] = []
        thief = self.serve(lambda r: stolen.append(r.headers))
        for status in (301, 302, 303, 307, 308):
            c = self.hostile(lambda r, status=status: r.answer(status, "", "text/plain", f"Location: {thief}/api/v1/jobs/1\r\n"))
            self.fails("strange", c.job, "1")
            self.fails("strange", c.enqueue, "log")
            self.fails("strange", next, c.watch())
        self.assertEqual(stolen, [])

    def test_a_connection_that_ended_while_it_waited_is_made_again(self) -> None:
        def handle(r: Request) -> None:  # says that it goes on, and does not
            r.connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"id": "1"}')

        c = self.hostile(handle, retries=0)
        for _ in range(3):
            self.assertEqual(c.job("1")["id"], "1")
            time.sleep(0.05)

    def test_a_stream_goes_on_where_it_broke_and_leaves_out_half_an_event(self) -> None:
        asked: List[Any] = []

        def handle(r: Request) -> None:
            asked.append(r.headers.get("last-event-id"))
            if len(asked) == 1:
                r.stream(': hello\r\n\r\nid: 7\r\nevent: job\r\ndata: {"n":\r\ndata: 1}\r\n\r\nid: 8\nevent: job\ndata: {"n": 2}')
            elif len(asked) == 2:
                r.stream("")  # one that says nothing ends as well
            else:
                r.stream('event: dropped\ndata: {"count": 1}\n\nid: 9\nevent: job\ndata: {"n": 3}\n\n')

        seen = []
        with self.hostile(handle).watch() as stream:
            for e in stream:
                seen.append((e.type, e.id, e.data))
                if e.id == "9":
                    break
        self.assertEqual(seen, [("connected", "", None), ("job", "7", {"n": 1}), ("connected", "7", None), ("dropped", "7", {"count": 1}), ("job", "9", {"n": 3})])
        self.assertEqual(asked, [None, "7", "7"])

    def test_streams_that_are_none_are_errors_and_one_that_is_closed_ends(self) -> None:
        def flood(r: Request) -> None:
            r.stream("")
            while True:
                r.connection.sendall(b"data: " + b"x" * 65536)

        self.fails("strange", next, self.hostile(lambda r: r.answer(200, "<html>", "text/html")).watch())
        self.fails("strange", list, self.hostile(lambda r: r.stream("data: {nonsense\n\n")).watch())
        self.fails("strange", list, self.hostile(flood).watch())
        self.fails("unreachable", next, self.client("http://127.0.0.1:1").watch())
        stream = self.pawl.watch()
        self.assertEqual(next(stream).type, "connected")
        threading.Timer(0.2, stream.close).start()
        began = time.monotonic()
        list(stream)
        self.assertLess(time.monotonic() - began, 10)

    def test_the_real_stream_goes_on_over_a_cut_without_a_gap(self) -> None:
        task = self.fresh_task()
        cuts: List[socket.socket] = []
        through = self.client(self.proxy(lambda r: cuts.append(r.connection)))
        made: List[str] = []
        seen = set()
        with through.watch(kind="job") as stream:
            for e in stream:
                id = e.data.get("job", {}).get("id") if isinstance(e.data, dict) else None
                # Other tests may do more meanwhile than is remembered; that is told.
                told = [m for m in made if m == id or e.type == "dropped" and m not in seen]
                seen.update(told)
                if len(seen) == 3:
                    break
                if told or e.type == "connected" and not made:  # before the first event as well
                    cuts[-1].shutdown(socket.SHUT_RDWR)
                    made.append(self.pawl.enqueue(task, delay="1h")["id"])  # while nobody listens
        self.assertEqual(seen, set(made))

    def test_a_worker_waits_for_a_server_that_is_away_or_talks_nonsense_and_works_on(self) -> None:
        task = self.fresh_task()
        spoil = [lambda r: None, lambda r: r.answer(200, '{"items": [{"id": 7}]}')]

        def rule(r: Request) -> bool:
            if r.path.endswith("/claim") and spoil:
                spoil.pop(0)(r)
                return True
            return False

        id = self.pawl.enqueue(task)["id"]
        with self.assertLogs("pawl", logging.WARNING) as said, self.working(task, lambda job: "done", self.client(self.proxy(rule))):
            self.ended(id)
        self.assertEqual(len(said.output), 2, said.output)
        self.assertNotIn(TOKEN, "".join(said.output))

    def test_a_server_that_does_not_wait_is_not_asked_in_a_loop(self) -> None:
        claims: List[float] = []

        def handle(r: Request) -> None:
            if r.path.endswith("/claim"):
                claims.append(time.monotonic())
            r.answer(200, '{"lease": "30s"}' if r.method == "GET" else '{"items": []}')

        worker = Worker(self.hostile(handle), "t", lambda job: None)
        thread = threading.Thread(target=worker.run)
        thread.start()
        self.eventually("it claims again", lambda: len(claims) >= 5)
        worker.stop()
        thread.join()
        self.assertGreater(claims[4] - claims[0], 0.8)
