from __future__ import annotations

import pprint
import traceback
import uuid
from datetime import datetime, timedelta, timezone

from pawl import Client, PawlError

from .kit import TOKEN, URL, Case


class TestClient(Case):
    def test_a_job_is_enqueued_read_listed_cancelled_and_retried(self) -> None:
        task = self.fresh_task()
        job = self.pawl.enqueue(task, {"n": 1}, delay="1h", lane="ada", key=task, priority=1, max_attempts=3)
        self.assertEqual((job["state"], job["lane"], job["key"], job["maxAttempts"]), ("scheduled", "ada", task, 3))
        self.assertEqual(self.pawl.job(job["id"])["payload"], {"n": 1})
        self.assertEqual([j["id"] for j in self.pawl.jobs(task=task)], [job["id"]])
        self.pawl.cancel(job["id"])
        self.assertEqual(self.state(job["id"]), "cancelled")
        for again in (self.pawl.cancel, self.pawl.retry):
            with self.assertRaises(PawlError) as e:
                again(job["id"])
            self.assertEqual(e.exception.code, "conflict")
        at = datetime.now(timezone.utc).replace(microsecond=0) + timedelta(hours=1)
        self.assertEqual(datetime.fromisoformat(self.pawl.enqueue(task, run_at=at)["runAt"].replace("Z", "+00:00")), at)
        with self.assertRaises(PawlError) as e:
            self.pawl.enqueue(task, run_at=datetime(2030, 1, 1))
        self.assertEqual(e.exception.code, "usage")

    def test_lists_go_on_over_pages_up_to_a_limit(self) -> None:
        task = self.fresh_task()
        ids = {self.pawl.enqueue(task, delay="1h")["id"] for _ in range(205)}
        self.assertEqual({j["id"] for j in self.pawl.jobs(task=task)}, ids)
        self.assertEqual(len(self.pawl.jobs(task=task, limit=7)), 7)

    def test_the_same_idempotency_key_enqueues_once(self) -> None:
        task, key = self.fresh_task(), str(uuid.uuid4())
        one, two = (self.pawl.enqueue(task, delay="1h", idempotency_key=key) for _ in range(2))
        self.assertEqual(one["id"], two["id"])
        with self.assertRaises(PawlError) as e:
            self.pawl.enqueue(task, delay="2h", idempotency_key=key)
        self.assertEqual(e.exception.code, "idempotency_mismatch")

    def test_errors_are_typed_with_their_place_hint_and_request(self) -> None:
        with self.assertRaises(PawlError) as e:
            self.pawl.job("355813294120960001")
        self.assertEqual((e.exception.code, e.exception.status), ("not_found", 404))
        self.assertTrue(e.exception.request_id)
        with self.assertRaises(PawlError) as e:
            self.pawl.enqueue("nobody-serves-this")
        self.assertEqual(e.exception.status, 422)
        self.assertTrue(e.exception.hint and any(f.pointer == "/task" for f in e.exception.faults))
        for name in ("..", ".", ""):
            with self.assertRaises(PawlError) as e:
                self.pawl.job(name)
            self.assertEqual(e.exception.code, "usage")
        with self.assertRaises(PawlError) as e:
            self.pawl.job("../tokens")
        self.assertIn(e.exception.status, (404, 422))

    def test_tokens_are_in_no_error_and_no_picture_of_a_client(self) -> None:
        wrong = self.client(URL, "pawl_wrong-and-secret")
        with self.assertRaises(PawlError) as e:
            wrong.job("1")
        self.assertEqual(e.exception.code, "unauthorized")
        pictures = [pprint.pformat(vars(c)) + pprint.pformat(vars(c._transport)) + repr(c) for c in (wrong, self.pawl)]
        pictures += ["".join(traceback.format_exception(type(e.exception), e.exception, None)), repr(vars(e.exception))]
        for picture in pictures:
            self.assertNotIn("wrong-and-secret", picture)
            self.assertNotIn(TOKEN, picture)
        for url, token, secret in ((URL, "with a\nbreak", "with a"), ("http://ada:hunter2@example.com", "", "hunter2")):
            with self.assertRaises(PawlError) as e:
                Client(url, token)
            self.assertEqual(e.exception.code, "usage")
            self.assertNotIn(secret, str(e.exception) + e.exception.hint)

    def test_events_are_published_once_and_lanes_tell_why_run_pause_and_resume(self) -> None:
        name = self.fresh_workflow()
        told = [self.pawl.publish(name, "order.placed", "4711", {"total": 7})["duplicate"] for _ in range(2)]
        self.assertEqual(told, [False, True])
        self.assertIn(name, [lane["name"] for lane in self.pawl.lanes("workflow")])
        self.pawl.pause("workflow", name)
        self.assertTrue(self.pawl.why("workflow", name)["paused"])
        with self.assertRaises(PawlError) as e:
            self.pawl.run_now("workflow", name)
        self.assertEqual((e.exception.code, e.exception.status), ("paused", 409))
        self.pawl.resume("workflow", name)
        self.eventually("the event is dealt with, and it runs again", lambda: self.runs_now(name))
        self.eventually("there is a run", lambda: self.pawl.runs(name))
        run = self.pawl.runs(name, limit=1)[0]
        self.assertEqual(self.pawl.run(run["id"])["lane"], name)

    def runs_now(self, name: str) -> bool:
        try:
            self.pawl.run_now("workflow", name)
        except PawlError as e:
            if e.code == "run_active":
                return False
            raise
        return True

    def test_schedules_are_paused_resumed_and_run_by_their_name(self) -> None:
        name = f"s-{uuid.uuid4()}"
        body = {"name": name, "run": {"job": {"task": "log", "payload": {"message": "hello"}}}, "cron": "0 0 1 1 *", "timezone": "UTC"}
        self.pawl.request("POST", "/api/v1/schedules", body=body)
        self.pawl.pause("schedule", name)
        self.assertTrue(self.pawl.why("schedule", name)["paused"])
        self.pawl.resume("schedule", name)
        self.pawl.run_now("schedule", name)
        with self.assertRaises(PawlError) as e:
            self.pawl.pause("schedule", "nobody-has-this")
        self.assertEqual(e.exception.code, "not_found")
