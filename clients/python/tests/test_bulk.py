from __future__ import annotations

import time
from typing import Any

from pawl import NewJob, PawlError, WorkerJob, permanent

from .kit import Case


class TestBulk(Case):
    def test_many_jobs_are_enqueued_in_order_or_none(self) -> None:
        task = self.fresh_task()
        jobs = self.pawl.enqueue_all(NewJob(task, n, delay="1h", key=f"{task}-{n}") for n in range(500))
        self.assertEqual([j["key"] for j in jobs], [f"{task}-{n}" for n in range(500)])
        self.assertEqual(self.pawl.job(jobs[499]["id"])["payload"], 499)
        with self.assertRaises(PawlError) as e:
            self.pawl.enqueue_all([NewJob(task), NewJob("nobody-serves-this")])
        self.assertIn("/jobs/1/task", [f.pointer for f in e.exception.faults])
        self.assertEqual(len(self.pawl.jobs(task=task)), 500)

    def test_jobs_are_cancelled_by_a_filter_after_they_were_counted(self) -> None:
        task = self.fresh_task()
        self.pawl.enqueue_all(NewJob(task, delay="1h", lane="ada" if n < 1100 else "bob") for n in range(1200))
        self.assertEqual(self.pawl.cancel_jobs(task=task, lane="ada", dry_run=True), {"matched": 1100, "changed": 0})
        self.assertEqual(self.pawl.cancel_jobs(task=task, lane="ada"), {"matched": 1100, "changed": 1100})
        self.assertEqual(len(self.pawl.jobs(task=task, state="scheduled")), 100)
        with self.assertRaises(PawlError) as e:
            self.pawl.cancel_jobs()
        self.assertEqual(e.exception.code, "invalid")

    def test_a_result_is_waited_for_and_failed_jobs_are_retried_by_a_filter(self) -> None:
        task = self.fresh_task()
        broken = True

        def do(job: WorkerJob) -> Any:
            if broken:
                raise permanent("the mail server is away")
            return job.payload

        with self.working(task, do, concurrency=3):
            jobs = self.pawl.enqueue_all(NewJob(task, n, lane=f"l{n}") for n in (1, 2, 3))
            self.assertEqual({self.pawl.wait(j["id"], 20)["state"] for j in jobs}, {"failed"})
            broken = False
            self.assertEqual(self.pawl.retry_jobs(task=task, error="mail server"), {"matched": 3, "changed": 3})
            self.assertEqual([self.pawl.wait(j["id"]).get("result") for j in jobs], [1, 2, 3])

    def test_waiting_ends_in_time(self) -> None:
        id = self.pawl.enqueue(self.fresh_task())["id"]
        began = time.monotonic()
        with self.assertRaises(PawlError) as e:
            self.pawl.wait(id, 0.7)
        self.assertEqual(e.exception.code, "timeout")
        self.assertLess(time.monotonic() - began, 10)
