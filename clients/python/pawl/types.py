"""What crosses the API. Answers are dicts with the names of the API; instants are
texts (UTC, RFC 3339). Servers may add fields."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any, Dict, List, Optional, TypedDict, Union

from .error import PawlError

Instant = Union[datetime, str]


@dataclass(frozen=True)
class NewJob:
    """A job that is asked for. What is None is left to the server."""

    task: str
    payload: Any = None  # any JSON value; None is {}
    run_at: Optional[Instant] = None  # when; None is now
    delay: Optional[str] = None  # how long from now instead, such as 90s or 7d; not in SQL
    lane: Optional[str] = None  # jobs of a lane run one at a time, in order
    key: Optional[str] = None  # at most one job with this key waits
    key_mode: Optional[str] = None  # what a second one does to it: replace, preserve_run_at or keep
    priority: Optional[int] = None  # 1 before 0 before -1
    max_attempts: Optional[int] = None

    def given(self) -> Dict[str, Any]:
        """What was said, by the names of the fields."""
        row = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) is not None}
        if "run_at" in row:
            row["run_at"] = instant_text(row["run_at"])
        return row

    def wire(self) -> Dict[str, Any]:
        """The same as the API takes it."""
        names = {"run_at": "runAt", "key_mode": "keyMode", "max_attempts": "maxAttempts"}
        return {names.get(name, name): value for name, value in self.given().items()}


def instant_text(at: Instant) -> str:
    if isinstance(at, str):
        return at
    if at.tzinfo is None:
        raise PawlError("usage", "a time without a zone can mean several instants", hint="Use datetime.now(timezone.utc), for example.")
    return at.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


class _JobAlways(TypedDict):
    id: str
    task: str
    payload: Any
    runAt: str
    key: Optional[str]
    lane: Optional[str]
    priority: Optional[int]
    state: str
    attempt: int
    maxAttempts: Optional[int]
    createdAt: str
    createdBy: Optional[str]
    internal: bool
    startedAt: Optional[str]
    finishedAt: Optional[str]
    lastError: Optional[str]
    node: Optional[str]


class Job(_JobAlways, total=False):
    """A job. Its state is scheduled, pending, running, failed, succeeded or cancelled;
    attempt is how many have ended."""

    result: Any  # what its worker said when it was done, while that is kept; not in lists


class ChangedJobs(TypedDict):
    """What was done to the jobs that a filter names."""

    matched: int
    changed: int  # fewer than matched if some ended meanwhile; 0 in a dry run


class Task(TypedDict):
    """A task that workers serve."""

    name: str
    lease: str
    maxAttempts: int
    concurrencyPerLane: int
    keepResults: str
    rate: Optional[Dict[str, Any]]
    batch: Optional[Dict[str, Any]]
    ownerUserId: str
    updatedBy: str
    createdAt: str
    updatedAt: str


class PublishedEvent(TypedDict):
    """An event with what its publishing did."""

    topic: str
    messageId: str
    payload: Any
    status: str
    createdAt: str
    duplicate: bool  # the messageId was known already
    changed: bool  # it was known and still pending, and has the new payload now


class Lane(TypedDict):
    """A workflow, a source or a schedule."""

    kind: str
    name: str
    id: str
    status: str
    issue: Optional[str]
    issueCode: Optional[str]
    schedule: str
    nextAt: Optional[str]
    pending: int
    paused: bool
    labels: Dict[str, str]


class Run(TypedDict):
    """One attempt of a lane."""

    id: str
    kind: str
    lane: str
    handler: str
    trigger: str
    phase: str
    status: str
    attempt: int
    scheduledFor: Optional[str]
    error: Optional[Dict[str, str]]
    createdAt: str
    startedAt: Optional[str]
    endedAt: Optional[str]


class LaneWhy(Lane):
    """Why a lane runs, does not run, or waits."""

    at: str
    next: str
    do: Optional[str]
    gates: List[Dict[str, Any]]
    recent: List[Run]


class RunDetail(Run):
    """Everything about a run."""

    chain: List[Run]
    logs: List[Dict[str, str]]
    output: Any
