"""The stream of events of a server."""

from __future__ import annotations

import http.client
import json
import random
import time
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional

from .error import PawlError, problem, strange
from .transport import Answer, Gone, Hold, Transport

FIRST_RECONNECT, LAST_RECONNECT = 0.2, 5.0
SILENCE = 90.0  # nothing came for so long, not even a comment: the connection is dead
MAX_EVENT = 4 << 20  # bytes


@dataclass(frozen=True)
class StreamEvent:
    """What happened. The type is job, run, workflow, source or schedule; connected at
    every new connection, before its first event; dropped where events were lost.
    Read then what you want to know: what you read and the events after it leave no
    gap."""

    id: str
    type: str
    data: Any


class Stream:
    """Iterates over events, across connections that break; only the first must
    succeed. close, from any thread, ends it; that is no error."""

    def __init__(self, transport: Transport, kind: Optional[str], id: Optional[str], last_event_id: str) -> None:
        self._transport = transport
        self._query: Dict[str, Optional[str]] = {"kind": kind, "id": id}
        self._last = last_event_id
        self._hold = Hold()
        self._events = self._follow()

    def __iter__(self) -> Iterator[StreamEvent]:
        return self

    def __next__(self) -> StreamEvent:
        return next(self._events)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._hold.leave()

    def _follow(self) -> Iterator[StreamEvent]:
        wait, once = FIRST_RECONNECT, False
        while not self._hold.left:
            try:
                for event in self._connection():
                    once, wait = True, FIRST_RECONNECT
                    yield event
            except Gone as e:
                if not once and not self._hold.left:
                    raise self._transport.unreachable("no answer from the server", e) from None
            except PawlError as e:
                if not once or not (e.code in ("unreachable", "unavailable") or e.status == 429):
                    raise
            end = time.monotonic() + wait * (0.5 + random.random())
            while not self._hold.left and time.monotonic() < end:
                time.sleep(0.05)
            wait = min(2 * wait, LAST_RECONNECT)

    def _connection(self) -> Iterator[StreamEvent]:
        headers = {"Accept": "text/event-stream"}
        if self._last:
            headers["Last-Event-ID"] = self._last
        answer = self._transport.open("GET", "/api/v1/stream", self._query, None, headers, time.monotonic() + 30, self._hold)
        try:
            kind = answer.header("Content-Type") or ""
            if answer.status != 200:
                raise problem(self._transport.where, answer.status, kind, answer.header("Retry-After"), answer.read(self._transport.where), self._transport.anonymous)
            if not kind.startswith("text/event-stream"):
                raise strange(self._transport.where, "no stream of events", answer.status)
            yield from self._read(answer)
        finally:
            self._hold.take(None)
            answer.close()

    def _read(self, answer: Answer) -> Iterator[StreamEvent]:
        kind, size, last, greeted = "message", 0, self._last, False
        data: List[str] = []
        while True:
            answer.sock.deadline = time.monotonic() + SILENCE
            try:
                raw = answer.response.readline(MAX_EVENT + 1)
            except (OSError, http.client.HTTPException, ValueError) as e:
                raise Gone(str(e)) from None
            size += len(raw)
            if size > MAX_EVENT:
                raise strange(self._transport.where, "an event without end")
            if not raw.endswith(b"\n"):
                return  # what the end cuts off is dropped
            line = raw.decode("utf-8", "replace").rstrip("\r\n")
            if line:
                name, _, value = line.partition(":")
                value = value[1:] if value.startswith(" ") else value
                if name == "event":
                    kind = value
                elif name == "data":
                    data.append(value)
                elif name == "id" and value.isascii() and value.isdigit():
                    last = value  # anything else could not be sent back
                continue
            if data and not greeted:
                yield StreamEvent(self._last, "connected", None)
            self._last = last  # not before: half an event has not been seen
            if not data and not greeted:
                yield StreamEvent(self._last, "connected", None)  # the first block says where it begins
            greeted = True
            if data:
                yield self._event(kind, "\n".join(data))
            kind, data, size = "message", [], 0

    def _event(self, kind: str, text: str) -> StreamEvent:
        try:
            return StreamEvent(self._last, kind, json.loads(text))
        except (ValueError, RecursionError):
            raise strange(self._transport.where, "an event that is not JSON") from None
