"""Kills a child for each line "N POINT" on stdin, while it charges N. With numbers as arguments it only charges these.

The children are forks of this process, which has no ledger open: a kill then costs no start of Python.
"""

from __future__ import annotations

import asyncio
import http.client
import math
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

import semel
from semel import _sidecar, _transport
from semel._adapt import state
from semel._steps import Ask

GOLDEN = 0.6180339887498949  # its multiples spread evenly over 0 to 1

at = ""  # the point of this child
ready = -1  # where it says that it begins
stage = ""  # what it asks for


def here(name: str) -> None:
    global at
    if at == name:
        os.kill(os.getpid(), signal.SIGKILL)
    if at == f"sidecar {name}":  # the helper dies, and the program goes on
        at = ""
        _transport.transport()._running()._child.kill()  # type: ignore[attr-defined]


def before(path: str) -> None:
    global stage
    stage = path.strip("/")
    here(f"before {stage}")


run, arun = Ask.run, Ask.arun


def asking(ask: Ask) -> Any:
    before(ask._request[1])
    answer = run(ask)
    here(f"{stage} is answered")
    return answer


async def aasking(ask: Ask) -> Any:
    before(ask._request[1])
    answer = await arun(ask)
    here(f"{stage} is answered")
    return answer


def sending(send: Callable[..., None]) -> Callable[..., None]:
    def sends(*args: Any, **kwargs: Any) -> None:
        send(*args, **kwargs)
        here(f"{stage} is sent")

    return sends


@semel.once(key="{n}")
def charge(n: int) -> str:
    here("before act")
    with open(os.environ["WORLD"], "a") as world:
        world.write(f"{n}\n")
    here("after act")
    return f"ch_{n}"


@semel.once(key="{n}", name="charge")
async def acharge(n: int) -> str:
    return charge.__wrapped__(n)  # type: ignore[attr-defined,no-any-return]


def end_of(n: int) -> str:
    try:
        return f"reply {asyncio.run(acharge(n)) if n % 2 else charge(n)}"
    except semel.InDoubt as doubt:
        return f"doubt {doubt.effect_id}"


def child(n: int, point: str, begins: int) -> None:
    global at
    state("warm", {})  # the ledger is open, or its helper runs, before the moment is measured
    Ask.run, Ask.arun = asking, aasking  # type: ignore[method-assign]
    _sidecar.Process.send = sending(_sidecar.Process.send)  # type: ignore[method-assign]
    http.client.HTTPConnection.request = sending(http.client.HTTPConnection.request)  # type: ignore[method-assign]
    at = point
    os.write(begins, b".")
    print(end_of(n), flush=True)


def kill(n: int, point: str, took: float) -> tuple[float, int]:
    """Seconds from the beginning to the end, and the signal. The point "any" is a moment of the time that a call took."""
    heard, begins = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(heard)
            child(n, point, begins)
            _transport.close()
            os._exit(0)
        except BaseException:
            sys.excepthook(*sys.exc_info())
            os._exit(1)
    os.close(begins)
    os.read(heard, 1)
    began = time.monotonic()
    if point == "any":
        while time.monotonic() < began + took * (n * GOLDEN % 1):
            pass
        os.kill(pid, signal.SIGKILL)
    status = os.waitpid(pid, 0)[1]
    os.close(heard)
    assert not os.WIFEXITED(status) or os.WEXITSTATUS(status) == 0, point
    return time.monotonic() - began, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


for number in sys.argv[1:]:
    print(end_of(int(number)))
took = math.inf
for line in () if sys.argv[1:] else sys.stdin:
    number, _, point = line.strip().partition(" ")
    lasted, signalled = kill(int(number), point, took)
    took = took if signalled else min(took, lasted)
    print("killed" if signalled == signal.SIGKILL else "ended", number, flush=True)
