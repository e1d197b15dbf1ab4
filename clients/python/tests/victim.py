"""A worker that says when it begins, and takes its time: victim.py TASK SECONDS DRAIN"""

import os
import sys

from pawl import Client, Worker, WorkerJob

task, takes, drain = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])


def do(job: WorkerJob) -> str:
    print("began", job.id, job.attempt)
    job.stopped.wait(takes)
    job.check()
    print("done", job.id, job.attempt)
    return "by the first"


Worker(Client(os.environ["PAWL_URL"], os.environ["PAWL_TOKEN"]), task, do, drain=drain).run()
print("goodbye")
