from __future__ import annotations

import uuid
from datetime import datetime, timedelta, timezone

from pawl import NewJob, PawlError, sql

from .kit import DATABASE, Case

if DATABASE:
    import psycopg
    from psycopg.rows import dict_row

    class TestSQL(Case):
        def test_a_job_is_committed_with_the_order_or_rolled_back_with_it(self) -> None:
            task, table = self.fresh_task(), "orders_" + uuid.uuid4().hex
            later = datetime.now(timezone.utc) + timedelta(hours=1)
            with psycopg.connect(DATABASE) as conn:
                conn.execute(f"create table {table} (id int primary key)")
                conn.commit()
                conn.execute(f"insert into {table} values (1)")
                payload = {"order": 1, "text": "it's \"quoted\" 100% ☃"}
                kept = sql.add_job(conn, task, payload, lane="ada", priority=1, max_attempts=3, key=task, key_mode="keep", run_at=later)
                conn.commit()
                conn.execute(f"insert into {table} values (2)")
                gone = sql.add_job(conn, task, {"order": 2})
                conn.rollback()
                self.assertEqual(conn.execute(f"select count(*) from {table}").fetchone(), (1,))
            job = self.pawl.job(kept)
            self.assertEqual((job["payload"], job["lane"], job["priority"], job["maxAttempts"], job["key"], job["state"]), (payload, "ada", 1, 3, task, "scheduled"))
            with self.assertRaises(PawlError) as e:
                self.pawl.job(gone)
            self.assertEqual(e.exception.code, "not_found")
            with psycopg.connect(DATABASE) as conn:
                self.assertEqual([sql.cancel_job(conn, kept), sql.cancel_job(conn, kept)], [True, False])
            self.assertEqual(self.state(kept), "cancelled")

        def test_many_jobs_are_added_in_order_or_none(self) -> None:
            task = self.fresh_task()
            later = datetime.now(timezone.utc) + timedelta(hours=1)
            with psycopg.connect(DATABASE, row_factory=dict_row) as conn:
                ids = sql.add_jobs(conn, [NewJob(task, n, run_at=later) for n in (1, 2, 3)])
            self.assertEqual([self.pawl.job(id)["payload"] for id in ids], [1, 2, 3])
            with self.assertRaises(psycopg.errors.InvalidParameterValue), psycopg.connect(DATABASE) as conn, conn.cursor() as cursor:
                sql.add_jobs(cursor, [NewJob(task), NewJob("nobody-serves-this")])
            self.assertEqual(len(self.pawl.jobs(task=task)), 3)
            with psycopg.connect(DATABASE) as conn:
                for wrong in (lambda: sql.add_jobs(conn, [NewJob(task, delay="1h")]), lambda: sql.add_job(conn, task, {1, 2}), lambda: sql.add_job(conn, task, run_at=datetime(2030, 1, 1))):
                    with self.assertRaises(PawlError) as e:
                        wrong()
                    self.assertEqual(e.exception.code, "usage")

        def test_an_event_is_published_once(self) -> None:
            name = self.fresh_workflow()
            thing = {"source": "shop", "type": "order", "id": "1", "title": "Order 1"}
            with psycopg.connect(DATABASE) as conn:
                told = [sql.publish(conn, name, "order.placed", "1", {"n": 1}, input=thing) for _ in range(2)]
                told.append(sql.publish(conn, name, "order.placed", "2"))
            self.assertEqual(told, [True, False, True])
