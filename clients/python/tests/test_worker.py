from __future__ import annotations

import json
import signal
import threading
import time
from datetime import datetime, timedelta, timezone
from typing import Any, List

from pawl import PawlError, Worker, WorkerJob, permanent, retry_after, snooze

from .kit import Case, Request


class TestWorker(Case):
    def test_jobs_are_done_several_at_once_and_their_results_are_kept(self) -> None:
        task = self.fresh_task(concurrency_per_lane=8)
        ids = [self.pawl.enqueue(task, {"n": n})["id"] for n in range(24)]
        lock, now, most = threading.Lock(), 0, 0

        def do(job: WorkerJob) -> Any:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            self.eventually("others began", lambda: most >= 4)
            with lock:
                now -= 1
            return {"doubled": job.payload["n"] * 2}

        with self.working(task, do, concurrency=4):
            for n, id in enumerate(ids):
                self.ended(id)
                self.assertEqual(self.pawl.job(id).get("result"), {"doubled": n * 2})
        self.assertEqual(most, 4)

    def test_what_a_handler_raises_decides_what_becomes_of_the_job(self) -> None:
        task = self.fresh_task()

        def do(job: WorkerJob) -> Any:
            if job.payload == "gone":
                raise permanent("no such address")
            if job.payload == "later":
                raise retry_after("1h", "try later")
            if job.payload == "slept":
                raise snooze(3600, "not yet")
            if job.payload == "broken":
                raise TypeError("it broke")
            if job.payload == "exit":
                raise SystemExit(3)
            return {"odd": {1, 2}, "nan": float("nan"), "large": "x" * (10 << 20), "nothing": None}[job.payload]

        names = ["gone", "later", "slept", "broken", "exit", "odd", "nan", "large", "nothing"]
        ids = {what: self.pawl.enqueue(task, what, lane=what)["id"] for what in names}
        with self.working(task, do, concurrency=9):
            for what in ("gone", "odd", "nan", "large", "nothing"):
                self.ended(ids[what])
            self.eventually("the others were given back", lambda: all(self.state(ids[w]) == "scheduled" for w in ("later", "slept")))
            self.eventually("what broke is told", lambda: all(self.pawl.job(ids[w]).get("lastError") for w in ("broken", "exit")))
        jobs = {what: self.pawl.job(id) for what, id in ids.items()}
        self.assertEqual((jobs["gone"]["state"], jobs["gone"]["attempt"], jobs["gone"]["lastError"]), ("failed", 1, "no such address"))
        self.assertGreater(datetime.fromisoformat(jobs["later"]["runAt"].replace("Z", "+00:00")), datetime.now(timezone.utc) + timedelta(minutes=50))
        self.assertEqual((jobs["later"]["attempt"], jobs["slept"]["attempt"]), (1, 0))
        self.assertEqual(jobs["broken"]["lastError"], "TypeError: it broke")
        for what in ("odd", "nan"):  # what was done is not done again because its result cannot be told
            self.assertEqual((jobs[what]["state"], jobs[what]["attempt"]), ("failed", 1))
            self.assertIn("not JSON", jobs[what]["lastError"] or "")
        self.assertRegex(jobs["large"]["lastError"] or "", "large|bytes")
        self.assertEqual(jobs["nothing"]["state"], "succeeded")

    def test_a_batch_is_done_by_one_call_and_each_of_its_jobs_ends_for_itself(self) -> None:
        task = self.fresh_task(batch={"size": 3, "wait": "200ms"})
        ids = [self.pawl.enqueue(task, n)["id"] for n in (1, 2, 3)]
        calls: List[int] = []

        def do_batch(jobs: List[WorkerJob]) -> List[Any]:
            calls.append(len(jobs))
            return [permanent("not two") if job.payload == 2 else job.payload * 10 for job in jobs]

        with self.working(task, do_batch=do_batch):
            for id in ids:
                self.ended(id)
        self.assertEqual(sum(calls), 3)
        self.assertEqual([self.pawl.job(id).get("result") for id in ids], [10, None, 30])
        self.assertEqual(self.state(ids[1]), "failed")

    def test_a_batch_with_the_wrong_number_of_results_is_not_done_again(self) -> None:
        task = self.fresh_task()
        id = self.pawl.enqueue(task)["id"]
        with self.working(task, do_batch=lambda jobs: []):
            self.ended(id)
        self.assertEqual((self.state(id), self.pawl.job(id)["attempt"]), ("failed", 1))

    def test_a_lease_is_extended_while_a_job_takes_longer(self) -> None:
        task = self.fresh_task(lease="1s")
        id = self.pawl.enqueue(task)["id"]
        attempts: List[int] = []

        def do(job: WorkerJob) -> str:
            attempts.append(job.attempt)
            self.assertFalse(job.stopped.wait(2.5))
            return "late"

        with self.working(task, do):
            self.ended(id)
        self.assertEqual((self.pawl.job(id).get("result"), attempts), ("late", [1]))

    def test_a_server_that_is_away_is_waited_for(self) -> None:
        task = self.fresh_task()
        id = self.pawl.enqueue(task)["id"]
        until = time.monotonic() + 1.5
        through = self.client(self.proxy(lambda request: time.monotonic() < until))  # and says nothing
        with self.working(task, lambda job: "done", through):
            self.ended(id)
        self.assertEqual(self.pawl.job(id).get("result"), "done")

    def test_a_cancelled_job_is_told(self) -> None:
        task = self.fresh_task(lease="1s")
        id = self.pawl.enqueue(task)["id"]
        causes: List[Any] = []

        def do(job: WorkerJob) -> None:
            job.stopped.wait(30)
            causes.append(job.cause)
            job.check()

        with self.working(task, do):
            self.eventually("it runs", lambda: self.state(id) == "running")
            self.pawl.cancel(id)
            self.eventually("the handler knows", lambda: causes)
        self.assertEqual((causes, self.state(id)), (["cancelled"], "cancelled"))

    def test_a_lost_lease_is_told_and_what_comes_after_it_does_not_count(self) -> None:
        task = self.fresh_task(lease="1s")
        id = self.pawl.enqueue(task)["id"]
        through = self.client(self.proxy(lambda request: request.path.endswith("/extend")))  # and says nothing
        causes: List[Any] = []
        release = threading.Event()

        def zombie(job: WorkerJob) -> str:
            job.stopped.wait(30)
            causes.append(job.cause)
            release.wait(30)
            return "by the zombie"

        with self.working(task, zombie, through):
            self.eventually("the handler knows", lambda: causes)
            with self.working(task, lambda job: "by the other"):
                self.ended(id)
            release.set()
        job = self.pawl.job(id)
        self.assertEqual((causes, job["state"], job.get("result"), job["attempt"]), (["lease_lost"], "succeeded", "by the other", 2))

    def test_a_job_that_comes_back_to_the_same_worker_is_held_on_to(self) -> None:
        task = self.fresh_task(lease="1s")
        id = self.pawl.enqueue(task)["id"]
        again = threading.Event()
        through = self.client(self.proxy(lambda request: request.path.endswith("/extend") and not again.is_set()))
        attempts: List[int] = []

        def do(job: WorkerJob) -> str:
            attempts.append(job.attempt)
            if job.attempt == 1:
                again.wait(30)
                return "late"
            again.set()
            return "stopped" if job.stopped.wait(2.5) else "held"

        with self.working(task, do, through, concurrency=2):
            self.ended(id)
        self.assertEqual((self.pawl.job(id).get("result"), attempts), ("held", [1, 2]))

    def test_the_server_itself_tells_of_a_lost_lease(self) -> None:
        task = self.fresh_task(lease="9s")
        id = self.pawl.enqueue(task)["id"]
        causes: List[Any] = []

        def rule(request: Request) -> bool:
            if request.path.endswith("/extend"):
                request.answer(200, json.dumps({"items": [{"id": id, "ok": False, "code": "lease_lost", "message": "gone"}]}))
                return True
            return False

        def do(job: WorkerJob) -> None:
            job.stopped.wait(30)
            causes.append(job.cause)

        began = time.monotonic()
        with self.working(task, do, self.client(self.proxy(rule))):
            self.eventually("the handler knows", lambda: causes)
        self.assertEqual(causes, ["lease_lost"])
        self.assertLess(time.monotonic() - began, 8)  # before the lease ended

    def test_kill_9_of_a_worker_its_job_is_done_by_another_one_once(self) -> None:
        task = self.fresh_task(lease="1s")
        id = self.pawl.enqueue(task)["id"]
        victim = self.start(task, "60", "1")
        self.eventually("it began", lambda: f"began {id} 1" in victim.said())
        victim.process.kill()
        attempts: List[int] = []

        def do(job: WorkerJob) -> str:
            attempts.append(job.attempt)
            return "by the second"

        with self.working(task, do):
            self.ended(id)
        self.assertEqual((attempts, self.pawl.job(id).get("result")), ([2], "by the second"))
        self.assertNotIn("done", victim.said())

    def test_sigterm_lets_a_job_end_and_claims_nothing_more(self) -> None:
        task = self.fresh_task()
        first = self.pawl.enqueue(task)["id"]
        victim = self.start(task, "0.5", "20")
        self.eventually("it began", lambda: "began" in victim.said())
        victim.process.send_signal(signal.SIGTERM)
        second = self.pawl.enqueue(task)["id"]
        self.assertEqual(victim.process.wait(30), 0)
        self.eventually("it said goodbye", lambda: "goodbye" in victim.said())
        self.assertRegex(victim.said(), r"(?s)done.*goodbye")
        self.assertEqual((self.state(first), self.state(second)), ("succeeded", "pending"))

    def test_sigterm_ends_a_worker_that_waits_for_jobs_at_once(self) -> None:
        victim = self.start(self.fresh_task(), "0.5", "20")
        time.sleep(0.5)
        began = time.monotonic()
        victim.process.send_signal(signal.SIGTERM)
        self.assertIn(victim.process.wait(30), (0, -signal.SIGTERM))  # the latter if it had not begun yet
        self.assertLess(time.monotonic() - began, 10)

    def test_what_takes_too_long_at_the_end_is_given_back_at_once_without_an_attempt(self) -> None:
        task = self.fresh_task()
        id = self.pawl.enqueue(task)["id"]
        victim = self.start(task, "60", "0.1")
        self.eventually("it began", lambda: "began" in victim.said())
        victim.process.send_signal(signal.SIGTERM)
        self.assertEqual(victim.process.wait(30), 0)
        self.assertEqual((self.state(id), self.pawl.job(id)["attempt"]), ("pending", 0))

    def test_a_worker_without_its_task_or_with_a_bad_token_ends_with_the_error(self) -> None:
        with self.assertRaises(PawlError) as e:
            Worker(self.pawl, "nobody-declared-this", lambda job: None).run()
        self.assertEqual(e.exception.code, "not_found")
        with self.assertRaises(PawlError) as e:
            Worker(self.client(self.proxy(lambda request: False), "wrong"), self.fresh_task(), lambda job: None).run()
        self.assertEqual(e.exception.code, "unauthorized")
        with self.assertRaises(PawlError):
            Worker(self.pawl, "t")

    def test_an_answer_that_gets_lost_is_asked_for_again_and_the_job_is_done_once(self) -> None:
        task = self.fresh_task()
        id = self.pawl.enqueue(task)["id"]
        lost: List[str] = []
        calls: List[int] = []

        def rule(request: Request) -> Any:
            if request.path.endswith("/complete") and not lost:
                lost.append(request.path)
                return "lose"
            return False

        with self.working(task, lambda job: calls.append(1), self.client(self.proxy(rule))):
            self.ended(id)
        self.assertEqual((len(calls), len(lost), self.state(id)), (1, 1, "succeeded"))
