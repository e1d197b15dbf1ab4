"""Jobs and events inside the application's own transaction, by the SQL functions of
Pawl's PostgreSQL: committed together, rolled back together. The first argument is
what the transaction runs on: a connection or a cursor of psycopg."""

from __future__ import annotations

import json
from typing import Any, Iterable, List, Mapping, Optional

from .error import PawlError
from .types import Instant, NewJob

_TYPES = {"payload": "jsonb", "run_at": "timestamptz", "priority": "int", "max_attempts": "int"}


def add_job(
    tx: Any, task: str, payload: Any = None, *, run_at: Optional[Instant] = None, lane: Optional[str] = None, key: Optional[str] = None,
    key_mode: Optional[str] = None, priority: Optional[int] = None, max_attempts: Optional[int] = None,
) -> str:
    """Adds a job, and returns its id."""
    row = NewJob(task, payload, run_at, None, lane, key, key_mode, priority, max_attempts).given()
    given = ", ".join(f"{name} => %s::{_TYPES.get(name, 'text')}" for name in row)
    values = [_json(value) if name == "payload" else value for name, value in row.items()]
    return str(_rows(tx, f"select pawl.add_job({given})::text", values)[0])


def add_jobs(tx: Any, jobs: Iterable[NewJob]) -> List[str]:
    """Adds up to 10,000 jobs, all or none, and returns their ids in order."""
    rows = [job.given() for job in jobs]
    if any("delay" in row for row in rows):
        raise PawlError("usage", "a job in SQL has no delay", hint="Say run_at.")
    return [str(added) for added in _rows(tx, "select added::text from pawl.add_jobs(%s::jsonb) added", [_json(rows)])]


def publish(tx: Any, workflow: str, topic: str, message_id: str, payload: Any = None, *, input: Optional[Mapping[str, str]] = None) -> bool:
    """Publishes an event to a workflow. False: its message_id was known already. The
    input is the thing outside that it comes from: source, type, id and title."""
    values = [workflow, topic, message_id, _json(payload), None if input is None else _json(dict(input))]
    return bool(_rows(tx, "select pawl.publish(%s, %s, %s, %s::jsonb, %s::jsonb)", values)[0])


def cancel_job(tx: Any, id: str) -> bool:
    """Cancels a job of the application. False: it has ended, or is not the application's."""
    return bool(_rows(tx, "select pawl.cancel_job(%s::uuid)", [str(id)])[0])


def _rows(tx: Any, text: str, values: List[Any]) -> List[Any]:
    """Runs a statement, and returns its only column, whatever the rows look like."""
    cursor = tx if hasattr(tx, "fetchall") else tx.cursor()
    ran = cursor.execute(text, values)
    if hasattr(ran, "__await__"):
        ran.close()
        raise PawlError("usage", "the connection is asynchronous", hint="Use one of psycopg.Connection.")
    rows = cursor.fetchall()
    if cursor is not tx:
        cursor.close()
    return [next(iter(row.values())) if isinstance(row, Mapping) else row[0] for row in rows]


def _json(value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as e:
        raise PawlError("usage", f"the payload is not JSON: {e}") from None
