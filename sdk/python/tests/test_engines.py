"""The ledger on a server of another kind: the same classes, the same answers."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import PRELUDE, Python, World
from servers import TOKEN, Served, make_certificate

from semel.testing import Ledger

PROCESSES, THREADS = 4, 3
# A claim of a dead process is a doubt at its deadline where nobody sees the process.
POLICY = '[[rule]]\nmatch = "fn:killed"\ntimeout = "1s"\n'
USE = (
    PRELUDE
    + """
semel.configure(ledger=os.environ["ADDRESS"], policy=os.environ.get("POLICY"))
@semel.once(key="{n}")
def charge(n: int) -> dict[str, int]:
    act(n)
    return {"n": n}
@semel.once
def lost(n: int) -> None:
    act(f"lost-{n}")
    raise TimeoutError
@semel.once
def killed(n: int) -> None:
    act(f"killed-{n}")
    os.kill(os.getpid(), 9)
def doubt(fn):
    try:
        fn(1)
    except semel.InDoubt as doubt:
        return doubt.effect_id
"""
)


@pytest.fixture(params=["postgres", "postgres sidecar", "redis", "redis sidecar", "etcd", "etcd sidecar", "https"])
def there(
    request: pytest.FixtureRequest, semel_ledger: Ledger, env: dict[str, str], tmp_path: Path
) -> Iterator[dict[str, str]]:
    """The environment of a process that has its ledger there."""
    engine, _, way = request.param.partition(" ")
    (tmp_path / "rules.toml").write_text(POLICY)
    env["SEMEL_SDK"] = way
    ledger = env.pop("SEMEL_LEDGER")
    if engine != "https":
        address, name = request.getfixturevalue(engine), f"t{uuid.uuid4().hex}"
        more = f"?schema={name}&sslmode=disable" if engine == "postgres" else f"?ledger={name}"
        yield {**env, "ADDRESS": address + more, "POLICY": str(tmp_path / "rules.toml")}
        return
    key, certificate = make_certificate(tmp_path)
    tls = f'[serve]\ntls = {{ certificate = "{certificate}", key = "{key}" }}\n'
    (tmp_path / "rules.toml").write_text(POLICY + tls)
    serving = {**env, "SEMEL_LEDGER": ledger, "SEMEL_POLICY": str(tmp_path / "rules.toml")}
    server = Served(serving, tmp_path / "log", certificate)
    server.start()
    yield {**env, "ADDRESS": server.address, "SEMEL_TOKEN": TOKEN, "SEMEL_SERVER_CA": str(certificate)}
    server.kill()


def run(env: dict[str, str], code: str, end: int = 0) -> list[str]:
    done = subprocess.run([sys.executable, "-c", USE + code], env=env, text=True, capture_output=True, timeout=120)
    assert done.returncode == end, done.stderr
    return done.stdout.split()


def test_a_reply_is_the_next_process_s_too(there: dict[str, str], world: World) -> None:
    code = "assert charge(1) == charge(1) == {'n': 1}"
    run(there, code)
    run(there, code)
    assert world.acts() == ["1"]


def test_a_lost_answer_is_held_in_every_process(there: dict[str, str], world: World) -> None:
    code = "print(doubt(lost), doubt(lost))"
    first = run(there, code)
    assert first[0].startswith("ef_")
    assert first + run(there, code) == [first[0]] * 4
    assert world.acts() == ["lost-1"]


def test_a_killed_process_leaves_a_doubt(there: dict[str, str], world: World) -> None:
    run(there, "killed(1)", end=-signal.SIGKILL)
    assert run(there, "print(doubt(killed))")[0].startswith("ef_")
    assert world.acts() == ["killed-1"]


def test_twelve_equal_calls_of_processes_and_their_threads(
    there: dict[str, str], world: World, tmp_path: Path
) -> None:
    program = (
        USE
        + f"""
import threading, time
from concurrent.futures import ThreadPoolExecutor
start = threading.Barrier({THREADS})
def call(_):
    start.wait()
    return charge(1)["n"]
charge(0)
open(sys.argv[1], "w").close()
while not os.path.exists(sys.argv[2]):
    time.sleep(0.001)
with ThreadPoolExecutor({THREADS}) as pool:
    print(*pool.map(call, range({THREADS})))
"""
    )
    go, ready = tmp_path / "go", [tmp_path / f"ready{n}" for n in range(PROCESSES)]
    children = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(mark), str(go)], env=there, stdout=subprocess.PIPE, text=True
        )
        for mark in ready
    ]
    while not all(mark.exists() for mark in ready):
        assert all(child.poll() is None for child in children)
        time.sleep(0.01)
    go.touch()
    answers = [child.communicate(timeout=120)[0].split() for child in children]
    assert answers == [["1"] * THREADS] * PROCESSES
    assert world.acts() == ["0", "1"]


def test_an_unknown_root_runs_nothing(env: dict[str, str], python: Python, world: World, tmp_path: Path) -> None:
    key, certificate = make_certificate(tmp_path)
    (tmp_path / "serve.toml").write_text(f'[serve]\ntls = {{ certificate = "{certificate}", key = "{key}" }}\n')
    server = Served({**env, "SEMEL_POLICY": str(tmp_path / "serve.toml")}, tmp_path / "log", certificate)
    server.start()
    try:
        done = python(
            """
            semel.configure(ledger=os.environ["ADDRESS"])
            try:
                semel.call("charge", {}, lambda: act(1))
            except semel.LedgerUnavailable as error:
                print(error)
            """,
            ADDRESS=server.address, SEMEL_LEDGER="", SEMEL_TOKEN=TOKEN,
        )  # fmt: skip
    finally:
        server.kill()
    assert "did not run" in done.stdout and "certificate" in done.stdout, done
    assert world.acts() == []
