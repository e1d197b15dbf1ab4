"""Sends the e-mails of orders. Here it prints them."""

import os

from pawl import Client, Worker, WorkerJob, permanent

pawl = Client(os.environ.get("PAWL_URL", "http://127.0.0.1:7295"), os.environ["PAWL_TOKEN"])
pawl.declare("send-mail", lease="30s", max_attempts=5)


def send(job: WorkerJob) -> dict:
    mail = job.payload
    if "@" not in mail["to"]:
        raise permanent(f"{mail['to']} is no address")
    # The job's id names the message, so that one that is sent twice is known.
    print(f"to {mail['to']}: your order {mail['order']} of {mail['item']} <{job.id}>", flush=True)
    return {"messageId": job.id}


Worker(pawl, "send-mail", send, concurrency=10).run()
