"""A process kills itself around begin, act and settle; then the same calls come again.

SEMEL_KILLS says how many kills (30). Each takes its own point by its number, so a failure names how to repeat it.
"""

from __future__ import annotations

import os
import signal

import pytest
from conftest import Python, World

from semel.testing import Ledger

KILLS = int(os.environ.get("SEMEL_KILLS", "30"))
POINTS = [
    "before begin", "begin is sent", "begin is answered", "before act", "after act", "before settle", "settle is sent",
    "settle is answered", "sidecar before begin", "sidecar begin is sent", "sidecar after act",
    "sidecar settle is sent",
]  # fmt: skip

PROGRAM = """
import signal
from semel import _sidecar, _transport

point = os.environ["POINT"]
killed = False
def here(name):
    if point == name:
        os.kill(os.getpid(), signal.SIGKILL)
    global killed
    if point == "sidecar " + name and not killed:   # the helper dies, and the program goes on
        killed = True
        os.kill(_transport.transport()._running()._child.pid, signal.SIGKILL)

send, read = _sidecar.Process.send, _sidecar._read
stage = ["begin"]
def sending(process, slot, text):
    stage[0] = "settle" if "/settle" in text else "begin" if "/begin" in text else "other"
    here(f"before {stage[0]}")
    send(process, slot, text)
    here(f"{stage[0]} is sent")
def reading(answer):
    answer = read(answer)
    here(f"{stage[0]} is answered")
    return answer
_sidecar.Process.send, _sidecar._read = sending, reading

@semel.once(key="{n}")
def charge(n: int) -> str:
    here("before act")
    act(n)
    here("after act")
    return f"ch_{n}"
n = int(os.environ["N"])
try:
    print("reply", charge(n))
except semel.InDoubt as doubt:
    print("doubt", doubt.effect_id)
"""


@pytest.mark.parametrize("number", range(KILLS))
def test_no_kill_beside_a_sidecar_makes_a_duplicate_or_hides_a_doubt(
    number: int, python: Python, world: World, semel_ledger: Ledger
) -> None:
    point = POINTS[number % len(POINTS)]
    first = python(PROGRAM, POINT=point, N=str(number), SEMEL_SDK="sidecar")
    if not point.startswith("sidecar"):
        assert first.returncode == -signal.SIGKILL, first.stderr
    else:
        assert first.returncode == 0, first.stderr
    acted = len(world.acts())
    again = python(PROGRAM, POINT="", N=str(number), SEMEL_SDK="sidecar")
    assert again.returncode == 0, again.stderr
    kind, what = again.stdout.split()
    states = [effect["state"] for effect in semel_ledger.effects()]
    if kind == "reply":  # it happened, exactly once, and the record says so
        assert what == f"ch_{number}"
        assert len(world.acts()) == 1
        assert states == ["applied"]
    else:  # nobody ran it a second time, and the doubt is there to see
        assert len(world.acts()) == acted <= 1
        assert states == ["in_doubt"]
    if point in ("before begin", "settle is answered"):
        assert kind == "reply"
    if point in ("before act", "after act", "before settle"):
        assert kind == "doubt"


IN_PROCESS_POINTS = ["before begin", "begin is answered", "before act", "after act", "before settle", "settle is answered"]

IN_PROCESS = """
from semel import _in_process

point = os.environ["POINT"]
def here(name):
    if point == name:
        os.kill(os.getpid(), 9)

ask = _in_process.InProcess.ask
def asking(way, method, path, body=None):
    what = path.strip("/")
    here(f"before {what}")
    answer = ask(way, method, path, body)
    here(f"{what} is answered")
    return answer
_in_process.InProcess.ask = asking

@semel.once(key="{n}")
def charge(n: int) -> str:
    here("before act")
    act(n)
    here("after act")
    return f"ch_{n}"
n = int(os.environ["N"])
try:
    print("reply", charge(n))
except semel.InDoubt as doubt:
    print("doubt", doubt.effect_id)
"""


@pytest.mark.parametrize("number", range(KILLS))
def test_no_kill_of_the_process_that_holds_the_ledger_does_either(
    number: int, python: Python, world: World, semel_ledger: Ledger
) -> None:
    point = IN_PROCESS_POINTS[number % len(IN_PROCESS_POINTS)]
    first = python(IN_PROCESS, POINT=point, N=str(number))
    assert first.returncode == -signal.SIGKILL, first.stderr
    acted = len(world.acts())
    again = python(IN_PROCESS, POINT="", N=str(number))
    assert again.returncode == 0, again.stderr
    kind, what = again.stdout.split()
    states = [effect["state"] for effect in semel_ledger.effects()]
    if point in ("before begin", "settle is answered"):
        assert (kind, what) == ("reply", f"ch_{number}")
        assert len(world.acts()) == 1
        assert states == ["applied"]
    else:
        assert kind == "doubt"
        assert len(world.acts()) == acted <= 1
        assert states == ["in_doubt"]
