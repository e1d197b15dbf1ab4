"""The one error of this package."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional, Sequence


@dataclass(frozen=True)
class Fault:
    """One fault of the input: a JSON pointer into the body, and what is wrong there."""

    pointer: str
    message: str


class PawlError(Exception):
    """What every call of a client raises. The code is the server's, such as
    not_found, conflict or invalid, or one of these:

    unreachable: nothing answered, or not in time; see status for a proxy's answer.
    strange: what answered does not look like a Pawl server.
    timeout: what was waited for did not come.
    usage: the call itself is wrong; nothing was sent.
    """

    def __init__(
        self, code: str, message: str, *, status: int = 0, hint: str = "", request_id: str = "",
        faults: Sequence[Fault] = (), retry_after: Optional[float] = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status  # of the answer; 0 if there was none
        self.hint = hint  # what to do about it
        self.request_id = request_id  # as it is called in the server's log
        self.faults = tuple(faults)
        self.retry_after = retry_after  # in seconds: when the server wants to be asked again

    def __repr__(self) -> str:
        return f"PawlError({self.code!r}, {self.message!r}, status={self.status})"


def problem(where: str, status: int, kind: str, retry_after: Optional[str], body: bytes, anonymous: bool) -> PawlError:
    """The error that an answer stands for."""
    wanted = float(retry_after) if retry_after is not None and retry_after.isascii() and retry_after.isdigit() and len(retry_after) < 7 else None
    told: Any = None
    if kind.startswith("application/problem+json"):
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            pass  # told below
    if not isinstance(told, dict) or not _text(told.get("code")):
        if status in (502, 503, 504):
            return PawlError("unreachable", f"what answers at {where} cannot reach the server: {status}", status=status, retry_after=wanted)
        return strange(where, str(status), status)
    code, request_id = _text(told["code"]), _text(told.get("requestId"))
    hint = _text(told.get("hint"))
    if code == "unauthorized":
        hint = "Give the client a token." if anonymous else "The token is not valid here."
    message = _text(told.get("detail")) or _text(told.get("title")) or str(status)
    if code == "internal" and request_id:
        message += f" (request {request_id}, see the log of the server)"
    listed = told.get("errors")
    faults = [Fault(_text(f.get("pointer")), _text(f.get("message"))) for f in listed if isinstance(f, dict)] if isinstance(listed, list) else []
    return PawlError(code, message, status=status, hint=hint, request_id=request_id, faults=faults, retry_after=wanted)


def strange(where: str, what: str, status: int = 0) -> PawlError:
    """An answer that does not look like one of a Pawl server."""
    return PawlError("strange", f"{where} answered {what}", status=status, hint="Is it a Pawl server?")


def refused(e: PawlError) -> bool:
    """Whether the server itself refused, so that asking again is of no use."""
    return e.code == "usage" or (e.code != "strange" and 400 <= e.status < 500 and e.status not in (408, 409, 429))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
