"""The client of one server."""

from __future__ import annotations

import ssl
import time
from typing import Any, Dict, Iterable, List, Mapping, Optional, cast

from .error import PawlError, strange
from .stream import Stream
from .transport import Hold, Transport, segment
from .types import ChangedJobs, Instant, Job, Lane, LaneWhy, NewJob, PublishedEvent, Run, RunDetail, Task

PAGE_SIZE = 200
LONG_POLL = 20.0  # how long the server waits for a job in one request, in seconds
ENDED = ("succeeded", "failed", "cancelled")


class Client:
    """Talks to one server. It is safe for several threads, and its calls raise a
    PawlError. timeout is in seconds, for a whole call with its repeats; retries is how
    often a call is repeated that is safe to repeat."""

    def __init__(
        self, url: str, token: str = "", *, timeout: float = 30.0, retries: int = 3, user_agent: str = "pawl-python",
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._transport = Transport(url, token, timeout, retries, user_agent, ssl_context)

    def __repr__(self) -> str:
        return f"Client({self._transport.where!r})"

    def close(self) -> None:
        """Closes connections that wait."""
        self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Jobs.

    def enqueue(
        self, task: str, payload: Any = None, *, run_at: Optional[Instant] = None, delay: Optional[str] = None, lane: Optional[str] = None,
        key: Optional[str] = None, key_mode: Optional[str] = None, priority: Optional[int] = None, max_attempts: Optional[int] = None,
        idempotency_key: Optional[str] = None,
    ) -> Job:
        """Asks for a job. With an idempotency_key of yours it is enqueued once, however
        often you ask; without, one is made for each call."""
        job = NewJob(task, payload, run_at, delay, lane, key, key_mode, priority, max_attempts)
        return cast(Job, self._object("a job", "POST", "/api/v1/jobs", body=job.wire(), repeat=True, idempotency_key=idempotency_key))

    def enqueue_all(self, jobs: Iterable[NewJob], *, idempotency_key: Optional[str] = None) -> List[Job]:
        """Asks for up to 10,000 jobs: all of them are enqueued, or none. Answers are in the
        same order, without payloads."""
        wanted = [job.wire() for job in jobs]
        items = self._object("jobs", "POST", "/api/v1/jobs:bulk", body={"jobs": wanted}, repeat=True, idempotency_key=idempotency_key).get("items")
        if not isinstance(items, list) or len(items) != len(wanted):
            raise strange(self._transport.where, "jobs that cannot be read")
        return cast(List[Job], items)

    def job(self, id: str) -> Job:
        """Reads a job, waiting or ended."""
        return cast(Job, self._object("a job", "GET", f"/api/v1/jobs/{segment(id)}", repeat=True))

    def jobs(self, *, task: Optional[str] = None, lane: Optional[str] = None, key: Optional[str] = None, state: Optional[str] = None, limit: Optional[int] = None) -> List[Job]:
        """Lists jobs, the newest first; all if there is no limit."""
        return cast(List[Job], self._list("/api/v1/jobs", {"task": task, "lane": lane, "key": key, "state": state}, limit))

    def wait(self, id: str, timeout: Optional[float] = None) -> Job:
        """Waits until a job has ended, and returns it with its result. After timeout
        seconds, if given, it raises an error with the code timeout."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            began = time.monotonic()
            left = LONG_POLL if end is None else max(0.0, min(LONG_POLL, end - began))
            query = {"wait": f"{int(left + 0.999)}s"} if left > 0 else None
            job = cast(Job, self._object("a job", "GET", f"/api/v1/jobs/{segment(id)}", query=query, repeat=True, timeout=left + 30))
            if job["state"] in ENDED:
                return job
            now = time.monotonic()
            if end is not None and now >= end:
                raise PawlError("timeout", f"job {job['id']} has not ended; it is {job['state']}")
            if now - began < 0.5:
                time.sleep(0.25)  # the server does not wait

    def cancel(self, id: str) -> None:
        """Cancels a job, and stops it if it runs. It is not repeated by itself: a second
        one is refused."""
        self.request("DELETE", f"/api/v1/jobs/{segment(id)}")

    def retry(self, id: str) -> Job:
        """Runs a failed job again, now."""
        return cast(Job, self._object("a job", "POST", f"/api/v1/jobs/{segment(id)}/retry", repeat=True))

    def retry_jobs(
        self, *, task: Optional[str] = None, lane: Optional[str] = None, key: Optional[str] = None, state: Optional[str] = None,
        error: Optional[str] = None, older_than: Optional[str] = None, dry_run: bool = False,
    ) -> ChangedJobs:
        """Runs all failed jobs again that the filter names, some at a time: error is a
        part of their last error, older_than how long ago they were made, such as 2h. A
        dry run only counts them."""
        return self._change("/api/v1/jobs:retry", {"task": task, "lane": lane, "key": key, "state": state, "error": error, "olderThan": older_than}, dry_run)

    def cancel_jobs(
        self, *, task: Optional[str] = None, lane: Optional[str] = None, key: Optional[str] = None, state: Optional[str] = None,
        error: Optional[str] = None, older_than: Optional[str] = None, dry_run: bool = False,
    ) -> ChangedJobs:
        """Cancels all jobs that have not succeeded and that the filter names, some at a
        time."""
        return self._change("/api/v1/jobs:cancel", {"task": task, "lane": lane, "key": key, "state": state, "error": error, "olderThan": older_than}, dry_run)

    def _change(self, path: str, filter: Mapping[str, Optional[str]], dry_run: bool) -> ChangedJobs:
        """Goes on until nothing is left that the filter names. Each request is acted on
        once."""
        body: Dict[str, Any] = {"filter": {name: value for name, value in filter.items() if value is not None}}
        if dry_run:
            body["dryRun"] = True
        matched, changed = 0, 0
        while True:
            did = self._object("an answer", "POST", path, body=body, repeat=True)
            after = did.get("nextCursor")
            if not isinstance(did.get("matched"), int) or not isinstance(did.get("changed"), int) or (after and after == body.get("cursor")):
                raise strange(self._transport.where, "about jobs what cannot be read")
            matched, changed = matched + did["matched"], changed + did["changed"]
            if not after:
                return {"matched": matched, "changed": changed}
            body["cursor"] = after

    # Tasks that workers serve.

    def declare(
        self, task: str, *, lease: Optional[str] = None, max_attempts: Optional[int] = None, concurrency_per_lane: Optional[int] = None,
        keep_results: Optional[str] = None, rate: Optional[Mapping[str, Any]] = None, batch: Optional[Mapping[str, Any]] = None,
    ) -> Task:
        """Declares a task that workers serve. The same again changes nothing."""
        body = {
            "lease": lease, "maxAttempts": max_attempts, "concurrencyPerLane": concurrency_per_lane, "keepResults": keep_results,
            "rate": None if rate is None else dict(rate), "batch": None if batch is None else dict(batch),
        }
        given = {name: value for name, value in body.items() if value is not None}
        return cast(Task, self._object("a task", "PUT", f"/api/v1/tasks/{segment(task)}", body=given, repeat=True))

    def task(self, name: str) -> Task:
        return cast(Task, self._object("a task", "GET", f"/api/v1/tasks/{segment(name)}", repeat=True))

    def tasks(self, *, limit: Optional[int] = None) -> List[Task]:
        return cast(List[Task], self._list("/api/v1/tasks", {}, limit))

    # Events, lanes and runs.

    def publish(self, workflow: str, topic: str, message_id: str, payload: Any = None, *, input: Optional[Mapping[str, str]] = None) -> PublishedEvent:
        """Publishes an event to a workflow. One with a message_id that is known is not
        added twice."""
        body: Dict[str, Any] = {"topic": topic, "messageId": message_id, "payload": payload}
        if input is not None:
            body["input"] = dict(input)
        return cast(PublishedEvent, self._object("an event", "POST", f"/api/v1/workflows/{segment(workflow)}/events", body=body, repeat=True))

    def lanes(self, kind: Optional[str] = None, *, limit: Optional[int] = None) -> List[Lane]:
        """Lists lanes: workflows, sources and schedules, or those of one kind."""
        return cast(List[Lane], self._list("/api/v1/lanes", {"kind": kind}, limit))

    def why(self, kind: str, name: str) -> LaneWhy:
        """Reads why a lane runs, does not run, or waits."""
        return cast(LaneWhy, self._object("a lane", "GET", f"/api/v1/lanes/{segment(kind)}/{segment(name)}/why", repeat=True))

    def run_now(self, kind: str, name: str) -> Any:
        """Runs a lane now."""
        return self.request("POST", self._lane_path(kind, name) + "/run", repeat=True)

    def pause(self, kind: str, name: str) -> None:
        """Pauses a lane: nothing more of it is started."""
        self._enable(kind, name, False)

    def resume(self, kind: str, name: str) -> None:
        self._enable(kind, name, True)

    def runs(self, lane: Optional[str] = None, *, kind: Optional[str] = None, status: Optional[str] = None, limit: Optional[int] = None) -> List[Run]:
        """Lists the newest runs, of one lane or of all."""
        return cast(List[Run], self._list("/api/v1/runs", {"lane": lane, "kind": kind, "status": status}, limit))

    def run(self, id: str) -> RunDetail:
        """Reads everything about a run."""
        return cast(RunDetail, self._object("a run", "GET", f"/api/v1/runs/{segment(id)}", repeat=True))

    def watch(self, *, kind: Optional[str] = None, id: Optional[str] = None, last_event_id: str = "") -> Stream:
        """Follows what happens, across connections that break. kind may have several,
        separated by commas."""
        return Stream(self._transport, kind, id, last_event_id)

    # The rest.

    def request(
        self, method: str, path: str, *, query: Optional[Mapping[str, Any]] = None, body: Any = None, timeout: Optional[float] = None,
        repeat: bool = False, idempotency_key: Optional[str] = None, hold: Optional[Hold] = None,
    ) -> Any:
        """Asks for what has no method of its own. Only what says repeat is sent again."""
        return self._transport.send(method, path, query=query, body=body, timeout=timeout, repeat=repeat, idempotency_key=idempotency_key, hold=hold)

    def _object(self, what: str, method: str, path: str, **more: Any) -> Dict[str, Any]:
        answer = self._transport.send(method, path, **more)
        if not isinstance(answer, dict):
            raise strange(self._transport.where, what + " that cannot be read")
        return answer

    def _list(self, path: str, query: Mapping[str, Any], limit: Optional[int]) -> List[Any]:
        items: List[Any] = []
        cursor: Optional[str] = None
        while True:
            want = PAGE_SIZE if limit is None else min(PAGE_SIZE, limit - len(items))
            page = self._object("a list", "GET", path, query={**query, "limit": want, "cursor": cursor}, repeat=True)
            if not isinstance(page.get("items"), list):
                raise strange(self._transport.where, "a list that cannot be read")
            items += page["items"]
            after = page.get("nextCursor")
            if not after or (limit is not None and len(items) >= limit):
                return items
            if after == cursor:
                raise strange(self._transport.where, "the same page of a list twice")
            cursor = after

    def _lane_path(self, kind: str, name: str) -> str:
        """Schedules are found by their id, because their name is their owner's."""
        if kind != "schedule":
            return f"/api/v1/{segment(kind)}s/{segment(name)}"
        found = self._list("/api/v1/schedules", {"name": name}, 1)
        if not found:
            raise PawlError("not_found", f"you have no schedule {name!r}", status=404)
        return f"/api/v1/schedules/{segment(found[0]['id'])}"

    def _enable(self, kind: str, name: str, enabled: bool) -> None:
        path = self._lane_path(kind, name)
        if kind == "schedule":
            self.request("PATCH", path, body={"enabled": enabled}, repeat=True)
            return
        self.request("POST", f"{path}/{'resume' if enabled else 'pause'}", repeat=True)
