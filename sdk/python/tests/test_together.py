"""Equal calls at once: one run, and an answer for each."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import PRELUDE, World
from servers import TOKEN, Served

import semel
from semel import _transport
from semel.testing import Ledger

MANY = 12
pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture(params=["in process", "sidecar", "server"])
def way(request: pytest.FixtureRequest, semel_ledger: Ledger, env: dict[str, str]) -> None:
    if request.param == "sidecar":
        env["SEMEL_SDK"] = "sidecar"
        _transport.use(_transport.chosen()._replace(in_process=False))
    if request.param == "server":
        served: Served = request.getfixturevalue("served")
        env.update(SEMEL_LEDGER=served.address, SEMEL_TOKEN=TOKEN)


def test_threads(world: World) -> None:
    start = threading.Barrier(MANY)

    @semel.once(key="{n}")
    def charge(n: int) -> dict[str, int]:
        world.act(n)
        return {"n": n}

    def call(_: int) -> dict[str, int]:
        start.wait()
        return charge(1)

    with ThreadPoolExecutor(MANY) as pool:
        assert list(pool.map(call, range(MANY))) == [{"n": 1}] * MANY
    assert world.acts() == ["1"]


def test_tasks(world: World) -> None:
    waiting = 0

    @semel.once(key="{n}")
    async def charge(n: int) -> dict[str, int]:
        world.act(n)
        while waiting < MANY:  # all others have begun before this one ends
            await asyncio.sleep(0)
        return {"n": n}

    async def call() -> dict[str, int]:
        nonlocal waiting
        waiting += 1
        return await charge(1)

    async def main() -> list[dict[str, int]]:
        # A default pool of one thread: no waiting task may need one.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        return await asyncio.gather(*(call() for _ in range(MANY)))

    assert asyncio.run(main()) == [{"n": 1}] * MANY
    assert world.acts() == ["1"]


def test_processes(world: World, env: dict[str, str], tmp_path: Path) -> None:
    program = (
        PRELUDE
        + """
import time
@semel.once(key="{n}")
def charge(n: int) -> int:
    act(n)
    return n
open(sys.argv[1], "w").close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
print(charge(1))
"""
    )
    go = tmp_path / "go"
    ready = [tmp_path / f"ready{n}" for n in range(MANY)]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(mark), str(go)], env=env, stdout=subprocess.PIPE, text=True
        )
        for mark in ready
    ]
    while not all(mark.exists() for mark in ready):
        assert all(child.poll() is None for child in children)
        time.sleep(0.01)
    go.touch()
    assert [child.communicate(timeout=120)[0] for child in children] == ["1\n"] * MANY
    assert world.acts() == ["1"]
