"""Serves a task: claims jobs, does them, and says how they ended."""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence, Union

from .client import Client
from .error import PawlError, refused, strange
from .failure import Failure, duration_text
from .transport import Hold, segment

CLAIM_WAIT = 20.0
ANSWER_TIMEOUT = 30.0
ENDS_AT_ONCE, ENDS_SIZE = 100, 2 << 20  # how many ends go in one request, and how many characters of results
ENDS_FOR = 120.0  # how long an end is sent again that was not answered
MAX_ERROR_TEXT = 16 << 10
MAX_ITEMS = 1000

CAUSES = {"cancelled": "the job was cancelled", "lease_lost": "another worker may have the job", "stopping": "the worker stops"}


class WorkerJob:
    """A job in the hands of a worker."""

    def __init__(self, item: Dict[str, Any]) -> None:
        self.id: str = item["id"]
        self.task: str = item.get("task", "")
        self.payload: Any = item.get("payload")
        self.lane: Optional[str] = item.get("lane")
        self.key: Optional[str] = item.get("key")
        self.priority: int = item.get("priority", 0)
        self.run_at: str = item.get("runAt", "")
        self.attempt: int = item.get("attempt", 1)  # 1 is the first
        self.max_attempts: int = item.get("maxAttempts", 0)
        self.traceparent: Optional[str] = item.get("traceparent")
        self.stopped = threading.Event()
        """Set when the job must not go on; cause says why."""
        self.cause: Optional[str] = None
        """cancelled, lease_lost (another worker may have the job) or stopping."""
        self._token: str = item["leaseToken"]
        self._until = 0.0  # when the lease ends, by our own clock
        self._unit = _Unit()

    def check(self) -> None:
        """Raises an error with the cause as its code if the job must not go on."""
        if self.cause is not None:
            raise PawlError(self.cause, CAUSES[self.cause])

    def _stop(self, cause: str) -> None:
        if self.cause is None:
            self.cause = cause
            self.stopped.set()

    def _lease(self) -> Dict[str, str]:
        return {"id": self.id, "leaseToken": self._token}


class _Unit:
    """Jobs that are done by one call."""

    left = 1


class _End:
    def __init__(self, job: WorkerJob, result: Optional[str] = None, failure: Optional[Dict[str, Any]] = None) -> None:
        self.job, self.result, self.failure = job, result, failure


class Worker:
    """Serves a task. do does a job, and what it returns is the result, as JSON; see
    permanent, retry_after and snooze for errors that say more. do_batch does the jobs
    of a claim together instead: it returns as many results, in order, and an exception
    among them fails its job. Both are called in threads, up to concurrency at once.
    drain is how long jobs may go on when the worker is to end, in seconds."""

    def __init__(
        self, client: Client, task: str, do: Optional[Callable[[WorkerJob], Any]] = None, *,
        do_batch: Optional[Callable[[List[WorkerJob]], Sequence[Any]]] = None, id: Optional[str] = None, concurrency: int = 1,
        batch_size: Optional[int] = None, drain: float = 30.0, log: Optional[logging.Logger] = None,
    ) -> None:
        if (do is None) == (do_batch is None):
            raise PawlError("usage", "a worker needs one of do and do_batch")
        self._client, self._task, self._do, self._do_batch = client, task, do, do_batch
        self._path = f"/api/v1/tasks/{segment(task)}"
        self._id = id or f"{socket.gethostname()} (process {os.getpid()})"
        self._slots = min(max(int(concurrency), 1), MAX_ITEMS)
        self._batch_size, self._drain_for = batch_size, drain
        self._log = log or logging.getLogger("pawl")
        self._lease = 30.0
        self._hold = Hold()  # ends a claim that waits
        self._over = threading.Event()
        self._changed = threading.Condition()
        # Guarded by _changed:
        self._stopping = False
        self._busy = 0
        self._hand: Dict[str, WorkerJob] = {}
        self._ends: List[_End] = []

    def stop(self) -> None:
        """Ends run: it claims nothing more, lets jobs end for a while, and gives back the
        others."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        self._hold.leave()

    def run(self, *, signals: bool = True) -> None:
        """Works until it is stopped, by stop, or by SIGTERM or SIGINT if it runs in the
        main thread. It raises at once if the task is not declared or the token is
        refused; a server that is away is waited for."""
        if not signals or threading.current_thread() is not threading.main_thread():
            self._work()
            return
        asked: List[int] = []  # a handler may not wait for a lock
        failed: List[BaseException] = []

        def ask(number: int, _frame: Optional[FrameType]) -> None:
            asked.append(number)
            signal.signal(number, signal.SIG_DFL)  # once more ends the process

        def work() -> None:
            try:
                self._work()
            except BaseException as e:
                failed.append(e)

        before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            thread = threading.Thread(target=work, name="pawl-worker")
            thread.start()
            while thread.is_alive():
                thread.join(0.1)
                if asked:
                    self.stop()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        if failed:
            raise failed[0]

    def _work(self) -> None:
        self._meet()
        threads = [threading.Thread(target=target, name=f"pawl-{target.__name__}", daemon=True) for target in (self._beat, self._tell)]
        for thread in threads:
            thread.start()
        with ThreadPoolExecutor(self._slots, thread_name_prefix="pawl-job") as pool:
            try:
                self._claim_loop(pool)
            finally:
                self._drain()
                self._over.set()
                with self._changed:
                    self._changed.notify_all()
                for thread in threads:
                    thread.join()

    def _claim_loop(self, pool: ThreadPoolExecutor) -> None:
        wait = 1.0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopping or self._busy < self._slots)
                if self._stopping:
                    return
                free = self._slots - self._busy
            began = time.monotonic()
            try:
                claimed = self._claim(free)
                self._begin(pool, claimed, time.monotonic())
                wait = 1.0
                if not claimed and time.monotonic() - began < 1:
                    self._pause(0.25)  # what answers does not wait
            except PawlError as e:
                if self._stopping:
                    return
                if refused(e):
                    raise
                self._log.warning("claim jobs of %s; it is tried again in %g s: %s", self._task, wait, e)
                self._pause(wait)
                wait = min(2 * wait, 30.0)

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, seconds)

    def _claim(self, free: int) -> List[WorkerJob]:
        limit = free if self._do_batch is None else self._batch_size
        body: Dict[str, Any] = {"workerId": self._id, "wait": f"{CLAIM_WAIT:g}s"}
        if limit is not None:
            body["limit"] = limit
        # Not repeated: whoever took the jobs must hear of them.
        items = self._post("claim", body, CLAIM_WAIT + ANSWER_TIMEOUT, self._hold)
        if any(not isinstance(item.get("id"), str) or not isinstance(item.get("leaseToken"), str) for item in items):
            raise strange("the server", "to claim what cannot be read")
        return [WorkerJob(item) for item in items]

    def _post(self, verb: str, body: Union[bytes, Dict[str, Any]], timeout: float, hold: Optional[Hold] = None) -> List[Dict[str, Any]]:
        answer = self._client.request("POST", f"{self._path}/{verb}", body=body, timeout=timeout, hold=hold)
        items = answer.get("items") if isinstance(answer, dict) else None
        if not isinstance(items, list) or any(not isinstance(item, dict) for item in items):
            raise strange("the server", f"to {verb} what cannot be read")
        return items

    def _begin(self, pool: ThreadPoolExecutor, claimed: List[WorkerJob], now: float) -> None:
        units = [[job] for job in claimed] if self._do_batch is None else [claimed] if claimed else []
        for jobs in units:
            unit = _Unit()
            unit.left = len(jobs)
            with self._changed:
                self._busy += 1
                for job in jobs:
                    job._unit, job._until = unit, now + self._lease
                    self._hand[job.id] = job
            pool.submit(self._do_all, jobs)

    def _do_all(self, jobs: List[WorkerJob]) -> None:
        try:
            ends = [_done(jobs[0], self._do(jobs[0]))] if self._do is not None else self._do_together(jobs)
        except BaseException as e:
            ends = [_failed(job, e) for job in jobs]
        with self._changed:
            self._ends += ends
            self._changed.notify_all()

    def _do_together(self, jobs: List[WorkerJob]) -> List[_End]:
        assert self._do_batch is not None
        results = self._do_batch(list(jobs))
        if not isinstance(results, (list, tuple)) or len(results) != len(jobs):
            count = len(results) if isinstance(results, (list, tuple)) else "no"
            raise Failure(f"do_batch returned {count} results for {len(jobs)} jobs", "permanent")
        return [_failed(job, result) if isinstance(result, BaseException) else _done(job, result) for job, result in zip(jobs, results)]

    def _drain(self) -> None:
        """Lets jobs end for a while, tells the others to, and says how all ended."""
        with self._changed:
            if self._changed.wait_for(lambda: not self._hand, self._drain_for):
                return
            for job in self._hand.values():
                job._stop("stopping")
            self._changed.wait_for(lambda: not self._hand)

    def _meet(self) -> None:
        """Reads the lease for the first time, from a server that may be away."""
        wait = 1.0
        while not self._stopping:
            try:
                return self._read_lease()
            except PawlError as e:
                if refused(e):
                    raise
                self._log.warning("ask for the task %s; it is tried again in %g s: %s", self._task, wait, e)
                self._pause(wait)
                wait = min(2 * wait, 30.0)

    def _read_lease(self) -> None:
        units = {"d": 86400, "h": 3600, "m": 60, "s": 1}
        text = str(self._client.task(self._task).get("lease", ""))
        self._lease = max(1.0, float(sum(int(n) * units[unit] for n, unit in re.findall(r"(\d+)([dhms])", text))))

    def _beat(self) -> None:
        """Asks for more time for all jobs in hand, three times in a lease."""
        asked = time.monotonic()
        while not self._over.wait(self._lease / 3):
            try:
                if time.monotonic() - asked > 60:
                    asked = time.monotonic()
                    self._read_lease()
                self._extend()
            except PawlError as e:
                self._log.warning("ask for more time for jobs of %s: %s", self._task, e)
            with self._changed:
                for job in self._hand.values():
                    if time.monotonic() >= job._until:
                        job._stop("lease_lost")  # nobody answered for a whole lease

    def _extend(self) -> None:
        with self._changed:
            all_jobs = list(self._hand.values())
        for start in range(0, len(all_jobs), MAX_ITEMS):
            some = all_jobs[start : start + MAX_ITEMS]
            asked = {job.id: job for job in some}  # by then another lease of the job may be in hand
            began = time.monotonic()
            answers = self._post("extend", {"items": [job._lease() for job in some]}, max(1.0, self._lease / 3))
            with self._changed:
                for answer in answers:
                    job = asked.get(str(answer.get("id")))
                    if job is None:
                        continue
                    if answer.get("ok") is True:
                        job._until = began + self._lease
                    elif answer.get("code") == "cancelled":
                        job._until = float("inf")  # it is still ours, to say that it ended
                        job._stop("cancelled")
                    else:
                        job._stop("lease_lost")

    def _tell(self) -> None:
        """Says how jobs ended, as many at once as there are, until no more come."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ends or (self._over.is_set() and not self._hand))
                if not self._ends:
                    return
                batch, size = [], 0  # type: List[_End], int
                while self._ends and len(batch) < ENDS_AT_ONCE:
                    size += len(self._ends[0].result or "")
                    if batch and size > ENDS_SIZE:
                        break
                    batch.append(self._ends.pop(0))
                # Whose lease was lost may have been claimed again meanwhile: that one goes on.
                ours = [end for end in batch if self._hand.get(end.job.id) is end.job]
            self._tell_batch(ours)
            with self._changed:
                for end in batch:
                    if self._hand.get(end.job.id) is end.job:
                        del self._hand[end.job.id]
                    end.job._unit.left -= 1
                    if end.job._unit.left == 0:
                        self._busy -= 1
                self._changed.notify_all()

    def _tell_batch(self, batch: List[_End]) -> None:
        done, failed = [e for e in batch if e.failure is None], [e for e in batch if e.failure is not None]
        if done:
            items = [json.dumps(e.job._lease()) for e in done]
            items = [item if e.result is None else f'{item[:-1]}, "result": {e.result}}}' for item, e in zip(items, done)]
            answers = {str(a.get("id")): a for a in self._insist("complete", items)}
            for e in done:
                answer = answers.get(e.job.id, {})
                if answer.get("code") == "too_large":
                    failed.append(_End(e.job, failure={"error": {"message": answer.get("message") or "the result is too large", "class": "permanent"}}))
        if failed:
            self._insist("fail", [json.dumps({**e.job._lease(), **(e.failure or {})}) for e in failed])

    def _insist(self, verb: str, items: List[str]) -> List[Dict[str, Any]]:
        """Says something until it is answered. Saying it twice does no harm."""
        began, wait = time.monotonic(), 0.1
        body = ('{"items": [' + ", ".join(items) + "]}").encode()
        while True:
            try:
                answers = self._post(verb, body, ANSWER_TIMEOUT)
                for a in answers:
                    if not a.get("ok") and a.get("code") != "too_large":
                        self._log.warning("what job %s of %s came to does not count: %s", a.get("id"), self._task, a.get("code"))
                return answers
            except PawlError as e:
                if e.status == 413 and len(items) == 1:
                    return [{"id": json.loads(items[0])["id"], "ok": False, "code": "too_large"}]
                if refused(e) or time.monotonic() - began > ENDS_FOR:
                    self._log.error("say how jobs of %s ended; they come back when their leases end: %s", self._task, e)
                    return []
                self._log.warning("say how jobs of %s ended; it is tried again: %s", self._task, e)
            time.sleep(wait)
            wait = min(2 * wait, 5.0)


def _done(job: WorkerJob, result: Any) -> _End:
    """A job was done. If its result cannot be told, doing it again would not help."""
    try:
        return _End(job, None if result is None else json.dumps(result, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as e:
        return _failed(job, Failure(f"the result is not JSON: {e}", "permanent"))


def _failed(job: WorkerJob, e: BaseException) -> _End:
    if job.cause in ("stopping", "cancelled"):
        return _End(job, failure={"error": {"message": CAUSES[job.cause], "class": "snooze"}, "retryAfter": "0s"})
    try:
        message = str(e)
    except Exception:
        message = ""
    kind = e.job_class if isinstance(e, Failure) else type(e).__name__
    failure: Dict[str, Any] = {"error": {"message": (message or type(e).__name__)[:MAX_ERROR_TEXT], "class": kind[:128]}}
    if isinstance(e, Failure) and e.after is not None:
        failure["retryAfter"] = duration_text(e.after)
    return _End(job, failure=failure)
