"""What a handler raises to say what becomes of a job."""

from __future__ import annotations

import math
from typing import Optional, Union

Duration = Union[int, float, str]
"""Seconds, or a text such as 90s, 5m or 7d."""


class Failure(Exception):
    """An error with a class (permanent: not again; snooze: no failure; any other word
    is for people) and with when to try again."""

    def __init__(self, message: str, job_class: str = "", after: Optional[Duration] = None) -> None:
        super().__init__(message)
        self.job_class = job_class
        self.after = after


def permanent(error: object) -> Failure:
    """The job need not be tried again."""
    return Failure(str(error), "permanent")


def retry_after(after: Duration, error: object) -> Failure:
    """The job is tried again then, if it has attempts left."""
    return Failure(str(error), "", after)


def snooze(after: Duration, why: str = "later") -> Failure:
    """The job is given back for a while; no attempt is counted."""
    return Failure(why, "snooze", after)


def duration_text(d: Duration) -> str:
    """As the API takes it."""
    if isinstance(d, str):
        return d
    if 0 < d < 1:
        return f"{math.ceil(d * 1000)}ms"
    return f"{max(0, math.ceil(d))}s"
