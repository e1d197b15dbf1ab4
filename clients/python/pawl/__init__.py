"""Talks to a Pawl server: jobs, workers, events, runs, lanes and streams; and adds
jobs inside the transactions of an application, with the driver that it has
already (see pawl.sql). It needs nothing but Python."""

from . import sql
from .client import Client
from .error import Fault, PawlError
from .failure import Failure, permanent, retry_after, snooze
from .stream import StreamEvent
from .types import ChangedJobs, Job, Lane, LaneWhy, NewJob, PublishedEvent, Run, RunDetail, Task
from .worker import Worker, WorkerJob

__all__ = [
    "ChangedJobs", "Client", "Failure", "Fault", "Job", "Lane", "LaneWhy", "NewJob", "PawlError", "PublishedEvent", "Run", "RunDetail",
    "StreamEvent", "Task", "Worker", "WorkerJob", "permanent", "retry_after", "snooze", "sql",
]
