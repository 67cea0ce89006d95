"""Takes the steps of a plan, and prints what came of them as one document.

A plan is {"base_url": "…", "headers": {…}, "retries": null or a count, "timeout_s": seconds, "steps": […]}. Each step has
a client of its own, as each call of a tool has; a list of steps is taken all at once, and {"in_turn": […]} one after the
other. What a step does is the driver's matter; these members are understood by all of them:

    outer   so often is the whole call made before it is given up, as frameworks do above their SDK, with a pause of
            pause_s before each but the first
    key     the idempotency key that the caller names

For each step there is {"ok": …, "value" or "error": …, "attempts": […]}: what the caller saw, and every answer that the
SDK saw on the way, with status, headers, and a digest of the body's bytes as they came.
"""

import hashlib
import json
import sys
import threading
import time


class Attempts(list):
    """What went over the wire in one step."""

    def answered(self, status, headers, body=b"") -> dict:
        headers = {name.lower(): value for name, value in headers.items()}
        self.append({"status": status, "headers": headers, "body_sha256": hashlib.sha256(body).hexdigest()})
        return self[-1]

    def failed(self, error) -> None:
        self.append({"error": type(error).__name__})


def told(error) -> dict:
    said = {"class": type(error).__name__, "message": str(error)}
    for name in ("status_code", "http_status", "code", "http_body"):
        value = getattr(error, name, None)
        if isinstance(value, (str, int)):
            said[name] = value
    said["status"] = said.get("status_code", said.get("http_status"))
    return said


def take(call, plan, step):
    if isinstance(step, list):
        results = [None] * len(step)

        def one(at) -> None:
            results[at] = take(call, plan, step[at])

        threads = [threading.Thread(target=one, args=(at,)) for at in range(len(step))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results
    if "in_turn" in step:
        return [take(call, plan, one) for one in step["in_turn"]]
    attempts = Attempts()
    for turn in range(step.get("outer", 1)):
        time.sleep(step.get("pause_s", 0) if turn else 0)
        try:
            return {"ok": True, "value": call(plan, step, attempts), "attempts": attempts}
        except Exception as error:
            failure = error
    return {"ok": False, "error": told(failure), "attempts": attempts}


def drive(call) -> None:
    plan = json.loads(sys.argv[1])
    print(json.dumps([take(call, plan, step) for step in plan["steps"]]))
