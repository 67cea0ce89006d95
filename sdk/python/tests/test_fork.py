"""A forked child gives up what it inherited and has a sidecar of its own."""

from __future__ import annotations

import multiprocessing
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from conftest import PRELUDE, Python, World

import semel

pytestmark = pytest.mark.usefixtures("semel_ledger")


def test_a_child_has_its_own_sidecar_and_the_same_answers(world: World, python: Python) -> None:
    done = python("""
        from semel import _transport
        @semel.once(key="{n}")
        def charge(n: int) -> int:
            act(n)
            return n
        def pid():
            return _transport.transport()._process._child.pid
        charge(1)
        mine = pid()
        for _ in range(3):
            child = os.fork()
            if child == 0:
                assert charge(1) == 1
                assert pid() != mine
                charge(os.getpid())
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        assert charge(1) == 1
        assert pid() == mine
    """, SEMEL_SDK="sidecar")
    assert done.returncode == 0, done.stderr
    assert len(world.acts()) == 4


def test_the_sidecar_ends_with_its_parent_although_a_child_lives_on(env: dict[str, str], tmp_path: Path) -> None:
    program = (
        PRELUDE
        + """
from semel import _transport
semel.once(name="act")(act)(1)
print(_transport.transport()._process._child.pid, flush=True)
if os.fork() == 0:
    os.close(1)
    os.read(0, 1)   # lives until the test lets it go
    os._exit(0)
os.kill(os.getpid(), 9)
"""
    )
    # Only the child of the killed process keeps this pipe.
    env["SEMEL_SDK"] = "sidecar"
    child = subprocess.Popen([sys.executable, "-c", program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    beside = int(child.stdout.readline())
    assert child.wait() == -signal.SIGKILL
    while alive(beside):
        time.sleep(0.01)  # ends by the timeout of the whole run, if ever
    child.stdin.close()


def test_a_child_does_not_open_what_its_parent_has_open(world: World, python: Python) -> None:
    done = python("""
        from semel import _transport
        @semel.once(key="{n}")
        def charge(n: int) -> int:
            act(n)
            return n
        charge(1)
        assert _transport.transport().in_process
        child = os.fork()
        if child == 0:
            assert charge(1) == 1
            assert not _transport.transport().in_process
            held = os.popen(f"ls -l /proc/{os.getpid()}/fd").read()
            assert "ledger" not in held, held
            charge(2)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert charge(1) == 1 and charge(2) == 2
        assert _transport.transport().in_process
    """)
    assert done.returncode == 0, done.stderr
    assert sorted(world.acts()) == ["1", "2"]


def test_a_dead_parent_is_seen_dead_although_a_child_lives_on(env: dict[str, str], python: Python) -> None:
    program = (
        PRELUDE
        + """
@semel.once(key="1")
def charge() -> int:
    if os.fork() == 0:
        os.close(1)
        os.read(0, 1)   # lives until the test lets it go
        os._exit(0)
    os.kill(os.getpid(), 9)
charge()
"""
    )
    child = subprocess.Popen([sys.executable, "-c", program], env=env, stdin=subprocess.PIPE)
    assert child.stdin is not None
    assert child.wait() == -signal.SIGKILL
    # In flight it would be waited for until its deadline.
    done = python("""
        try:
            semel.once(key="1", name="charge")(lambda: 1)()
        except semel.InDoubt as doubt:
            print("doubt")
    """)
    assert done.stdout.split() == ["doubt"], done.stderr
    child.stdin.close()


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@semel.once(key="{n}")
def charge(n: int, path: str) -> int:
    World(Path(path)).act(n)
    return n


def _work(n: int, path: str) -> int:
    return charge(n, path)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setenv("SEMEL_LEDGER", env["SEMEL_LEDGER"])
    semel.configure()
    assert charge(0, str(world.path)) == 0
    with multiprocessing.get_context(method).Pool(4) as pool:
        replies = pool.starmap(_work, [(n % 3, str(world.path)) for n in range(12)])
    assert replies == [n % 3 for n in range(12)]
    assert sorted(world.acts()) == ["0", "1", "2"]


def test_gunicorn(world: World, env: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("gunicorn")
    (tmp_path / "app.py").write_text(
        PRELUDE
        + """
@semel.once(key="{n}")
def charge(n: int) -> int:
    act(n)
    return n
charge(0)   # before the fork: with --preload the master has a sidecar
def app(environ, start):
    charge(0)
    reply = charge(int(environ["QUERY_STRING"]))
    start("200 OK", [])
    return [f"{reply} {os.getpid()}".encode()]
"""
    )
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        command = [sys.executable, "-m", "gunicorn", "--preload", "-w", "3", "--chdir", str(tmp_path), "app:app"]
        bind = ["-b", f"fd://{listener.fileno()}"]
        server = subprocess.Popen([*command, *bind], env=env, pass_fds=[listener.fileno()], stderr=subprocess.PIPE)
        try:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}/?"
            replies = [urllib.request.urlopen(url + str(n % 4), timeout=60).read().split() for n in range(24)]
        finally:
            server.terminate()
            server.communicate(timeout=60)
    assert [int(reply) for reply, _ in replies] == [n % 4 for n in range(24)]
    assert sorted(world.acts()) == ["0", "1", "2", "3"]


def test_celery(world: World, env: dict[str, str], tmp_path: Path) -> None:
    pytest.importorskip("celery")
    for name in ("queue", "results", "control"):
        (tmp_path / name).mkdir()
    (tmp_path / "jobs.py").write_text(
        PRELUDE
        + f"""
import celery
app = celery.Celery("jobs", broker="filesystem://", backend="file://{tmp_path}/results")
app.conf.broker_transport_options = dict(
    data_folder_in="{tmp_path}/queue", data_folder_out="{tmp_path}/queue", control_folder="{tmp_path}/control")
@semel.once(key="{{n}}")
def charge(n: int) -> int:
    act(n)
    return n
charge(0)   # before the fork
@app.task
def job(n):
    charge(0)
    return [charge(n), os.getpid()]
"""
    )
    here = {**env, "PYTHONPATH": str(tmp_path)}
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "jobs", "worker", "-c", "3", "--pool", "prefork", "-l", "ERROR"],
        env=here, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    ask = "from jobs import job; print([r.get(timeout=90)[0] for r in [job.delay(n % 4) for n in range(24)]])"
    try:
        asked = subprocess.run([sys.executable, "-c", ask], env=here, cwd=tmp_path, capture_output=True, text=True)
    finally:
        worker.terminate()
        said = worker.communicate(timeout=60)[0]
    assert asked.returncode == 0, (asked.stderr, said)
    assert asked.stdout.strip() == str([n % 4 for n in range(24)])
    assert sorted(world.acts()) == ["0", "1", "2", "3"]
