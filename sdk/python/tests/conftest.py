"""The tests use the real binary (SEMEL_BIN, or the installed one) and count effects in the world."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import servers

import semel
from semel.testing import Ledger


class World:
    """A file to which each real act appends a line."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def act(self, what: object) -> None:
        with open(self.path, "a") as file:  # one small O_APPEND write: processes do not tear each other's lines
            file.write(f"{what}\n")

    def acts(self) -> list[str]:
        return self.path.read_text().split() if self.path.exists() else []


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


Python = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def env(semel_ledger: Ledger, world: World) -> dict[str, str]:
    """The environment of a process that shares the test's ledger and world."""
    return {**os.environ, "SEMEL_LEDGER": semel_ledger.path, "WORLD": str(world.path), "PYTHONUNBUFFERED": "1"}


PRELUDE = """
import os, sys, semel
def act(what):
    with open(os.environ["WORLD"], "a") as file:
        file.write(f"{what}\\n")
"""


@pytest.fixture
def python(env: dict[str, str]) -> Python:
    """Runs a program that shares the test's ledger and world; `by` is a command that runs it in its turn."""

    def run(code: str, by: Iterable[str] = (), **more: Any) -> subprocess.CompletedProcess[str]:
        command = [*by, sys.executable, "-c", PRELUDE + textwrap.dedent(code)]
        return subprocess.run(command, env={**env, **more}, text=True, capture_output=True, timeout=120)

    return run


@pytest.fixture
def served(
    semel_ledger: Ledger, env: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[servers.Served]:
    """A `semel serve`, which this process uses."""
    server = servers.Served(env, tmp_path / "log")
    server.start()
    monkeypatch.setenv("SEMEL_TOKEN", servers.TOKEN)
    semel.configure(ledger=server.address)
    yield server
    semel.configure()
    server.kill()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server: SEMEL_TEST_POSTGRES, or one of our own."""
    pytest.importorskip("psycopg")
    given = os.environ.get("SEMEL_TEST_POSTGRES")
    if given:
        yield given
        return
    initdb = next(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb")), None) or shutil.which("initdb")
    if initdb is None:
        pytest.skip("PostgreSQL is not installed")
    # Not below pytest's own directory, which pytest closes to other users.
    directory = Path(tempfile.mkdtemp(prefix="semel-postgres-"))
    user = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to run as root
    if user:
        shutil.chown(directory, "nobody")
    data = str(directory / "data")
    subprocess.run(
        [initdb, "-U", "semel", "-A", "trust", "--no-sync", "-D", data],
        check=True,
        capture_output=True,
        cwd="/",
        **user,
    )
    port = servers.free_port()
    tool = str(Path(initdb).with_name("pg_ctl"))
    options = f"-h 127.0.0.1 -p {port} -k ''"
    start = [tool, "-D", data, "-o", options, "-w", "-l", str(directory / "log"), "start"]
    subprocess.run(start, check=True, stdout=subprocess.DEVNULL, cwd="/", **user)
    try:
        yield f"postgresql://semel@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([tool, "-D", data, "-m", "immediate", "stop"], stdout=subprocess.DEVNULL, cwd="/", **user)
        shutil.rmtree(directory)


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.redis(tmp_path_factory.mktemp("redis")) as address:
        yield address


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.etcd(tmp_path_factory.mktemp("etcd")) as address:
        yield address
