"""Sends requests to one server, and to no other: redirects are not followed."""

from __future__ import annotations

import http.client
import io
import json
import random
import re
import select
import socket
import ssl
import threading
import time
import uuid
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple
from urllib.parse import quote, urlencode, urlsplit

from .error import PawlError, problem, strange

MAX_ANSWER = 64 << 20  # bytes
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0  # seconds
DIAL_TIMEOUT = 5.0
MAX_IDLE = 30.0  # how long a connection waits for the next request


class Gone(Exception):
    """Nothing came back, or not all of it."""


class _Socket:
    """What http.client needs of a socket, with a deadline for all that is said and
    heard, however slowly the other side talks."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.deadline = time.monotonic() + DIAL_TIMEOUT
        self.readers = 0
        self.done = False

    def makefile(self, *_: Any, **__: Any) -> io.BufferedReader:
        self.readers += 1
        return io.BufferedReader(_Reader(self), 65536)

    def sendall(self, data: Any) -> None:
        self.ready().sendall(data)

    def close(self) -> None:
        """Closes it when the last answer was read: http.client closes a connection that
        is not to be used again while its answer is still to come."""
        self.done = True
        if self.readers == 0:
            self.sock.close()

    def ready(self) -> socket.socket:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise socket.timeout("timed out")
        self.sock.settimeout(left)
        return self.sock


class _Reader(io.RawIOBase):
    def __init__(self, of: _Socket) -> None:
        self.of = of

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.of.readers -= 1
            if self.of.done:
                self.of.close()

    def readinto(self, buffer: Any) -> int:
        return self.of.ready().recv_into(buffer)


class Answer:
    """An answer whose body was not read yet."""

    def __init__(self, connection: http.client.HTTPConnection, sock: _Socket, response: http.client.HTTPResponse) -> None:
        self.connection, self.sock, self.response = connection, sock, response
        self.status = response.status

    def header(self, name: str) -> Optional[str]:
        return self.response.getheader(name)

    def read(self, where: str) -> bytes:
        try:
            body = self.response.read(MAX_ANSWER + 1)
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise Gone(str(e)) from None
        if len(body) > MAX_ANSWER:
            raise strange(where, f"more than {MAX_ANSWER} bytes", self.status)
        if self.response.length:
            raise Gone("the answer ended too early")
        return body

    def close(self) -> None:
        self.response.close()
        self.connection.close()
        self.sock.close()


class Hold:
    """Lets another thread end a request that waits."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._sock: Optional[socket.socket] = None
        self.left = False

    def take(self, sock: Optional[socket.socket]) -> None:
        with self._lock:
            self._sock = sock
            if self.left and sock is not None:
                raise Gone("left")

    def leave(self) -> None:
        with self._lock:
            self.left = True
            if self._sock is not None:
                try:
                    self._sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass  # it has ended by itself


class Transport:
    """Requests to one server. Safe for several threads."""

    def __init__(self, url: str, token: str, timeout: float, retries: int, user_agent: str, ssl_context: Optional[ssl.SSLContext]) -> None:
        try:
            base = urlsplit(url)
            self._host, self._port = base.hostname or "", base.port
            good = base.scheme in ("http", "https") and self._host != "" and base.username is None and base.password is None
        except ValueError:
            good = False
        if not good or re.search(r"[\x00-\x20\x7f]", url):
            raise PawlError("usage", "the url is not an address of a server", hint="Use one such as http://127.0.0.1:7295, and the token for the password.")
        # Else the library would quote it in its own error.
        if not re.fullmatch(r"[\x21-\x7e]*", token):
            raise PawlError("usage", "the token has characters that no token has", hint="Look for spaces and line breaks around it.")
        self._path = base.path.rstrip("/")
        self.where = f"{base.scheme}://{base.netloc}{self._path}"  # without a password: there is none
        self._secret: Callable[[], str] = lambda: token  # not a value that a picture of the object shows
        self.anonymous = token == ""
        self._ssl = (ssl_context or ssl.create_default_context()) if base.scheme == "https" else None
        self._timeout, self._retries, self._user_agent = timeout, retries, user_agent
        self._lock = threading.Lock()
        self._idle: List[Tuple[float, http.client.HTTPConnection, _Socket]] = []  # guarded by _lock

    def send(
        self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, body: Any = None, timeout: Optional[float] = None,
        repeat: bool = False, idempotency_key: Optional[str] = None, hold: Optional[Hold] = None,
    ) -> Any:
        """Sends a request and returns what was answered as JSON; None if that is nothing.
        Only what may be repeated is sent again when nobody knows whether it was acted on."""
        deadline = time.monotonic() + (self._timeout if timeout is None else timeout)
        content = None if body is None else encode(body)
        if method == "POST" and repeat and idempotency_key is None:
            idempotency_key = str(uuid.uuid4())
        n = 0
        while True:
            try:
                return self._once(method, path, query, content, idempotency_key, deadline, hold)
            except PawlError as e:
                wait = max(min(FIRST_PAUSE * 2**n, LAST_PAUSE) * (0.5 + random.random()), min(e.retry_after or 0, LAST_PAUSE))
                again = e.code == "unreachable" or e.status in (429, 503)
                if not repeat or not again or n >= self._retries or time.monotonic() + wait >= deadline or (hold is not None and hold.left):
                    raise
            time.sleep(wait)
            n += 1

    def _once(self, method: str, path: str, query: Optional[Mapping[str, Any]], content: Optional[bytes], key: Optional[str], deadline: float, hold: Optional[Hold]) -> Any:
        headers = {"Accept": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        try:
            answer = self.open(method, path, query, content, headers, deadline, hold)
            try:
                body = answer.read(self.where)
            except BaseException:
                answer.close()
                raise
        except Gone as e:
            raise self.unreachable("no answer in time from the server" if time.monotonic() >= deadline else "no answer from the server", e) from None
        finally:
            if hold is not None:
                hold.take(None)
        self._keep(answer)
        if not 200 <= answer.status < 300:
            raise problem(self.where, answer.status, answer.header("Content-Type") or "", answer.header("Retry-After"), body, self.anonymous)
        if not body:
            return None
        try:
            return json.loads(body)
        except (ValueError, RecursionError):
            raise strange(self.where, "something that is not JSON", answer.status) from None

    def open(
        self, method: str, path: str, query: Optional[Mapping[str, Any]], content: Optional[bytes], headers: Dict[str, str], deadline: float, hold: Optional[Hold] = None,
    ) -> Answer:
        """Sends a request once and returns the answer before its body was read."""
        target = self._path + path
        given = {name: value for name, value in (query or {}).items() if value is not None and value != ""}
        if given:
            target += "?" + urlencode(given)
        headers = {**headers, "User-Agent": self._user_agent}
        if not self.anonymous:
            headers["Authorization"] = "Bearer " + self._secret()
        if content is not None:
            headers["Content-Type"] = "application/json"
        elif method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = "0"
        connection, sock = self._connect(deadline)
        try:
            sock.deadline = deadline
            if hold is not None:
                hold.take(sock.sock)
            try:
                connection.request(method, target, body=content, headers=headers)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may have been answered before it was read
            return Answer(connection, sock, connection.getresponse())
        except (OSError, http.client.HTTPException, ValueError) as e:
            connection.close()
            raise Gone(str(e)) from None
        except BaseException:
            connection.close()
            raise

    def _connect(self, deadline: float) -> Tuple[http.client.HTTPConnection, _Socket]:
        with self._lock:
            while self._idle:
                since, connection, sock = self._idle.pop()
                if time.monotonic() - since < MAX_IDLE and not _readable(sock.sock):
                    return connection, sock
                connection.close()
        left = max(0.001, min(DIAL_TIMEOUT, deadline - time.monotonic()))
        if self._ssl is not None:
            made: http.client.HTTPConnection = http.client.HTTPSConnection(self._host, self._port, timeout=left, context=self._ssl)
        else:
            made = http.client.HTTPConnection(self._host, self._port, timeout=left)
        try:
            made.connect()
        except (OSError, ValueError) as e:
            made.close()
            raise Gone(str(e)) from None
        raw: Any = made.sock
        wrapped = _Socket(raw)
        made.sock = wrapped
        made.auto_open = 0
        return made, wrapped

    def _keep(self, answer: Answer) -> None:
        if answer.response.will_close or not answer.response.isclosed():
            answer.close()
            return
        with self._lock:
            if len(self._idle) < 16:
                self._idle.append((time.monotonic(), answer.connection, answer.sock))
                return
        answer.close()

    def close(self) -> None:
        """Closes connections that wait."""
        with self._lock:
            for _, connection, _sock in self._idle:
                connection.close()
            self._idle.clear()

    def unreachable(self, what: str, cause: Optional[BaseException] = None) -> PawlError:
        why = f": {cause}" if cause is not None and str(cause) else ""
        return PawlError("unreachable", f"{what} at {self.where}{why}", hint="Check the address, and that the server runs.")


def _readable(sock: socket.socket) -> bool:
    """Whether a connection that waits has something to say: that it has ended."""
    try:
        return bool(select.select([sock], [], [], 0)[0])
    except (OSError, ValueError):
        return True


def segment(name: str) -> str:
    """A part of a path. Dots alone would lead elsewhere."""
    if not isinstance(name, str) or name in ("", ".", ".."):
        raise PawlError("usage", f"{name!r} is not a name or an id")
    return quote(name, safe="")


def encode(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body  # JSON already
    try:
        return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as e:
        raise PawlError("usage", f"what is to be sent is not JSON: {e}") from None
