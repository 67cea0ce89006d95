"""The transactional tier: the effect and its record commit together."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import PRELUDE

import semel
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")


class Bank:
    """A database with a balance, and a program that opens its transactions with one driver."""

    def __init__(self, program: str, url: str, env: dict[str, str]) -> None:
        self.program, self.url, self.env = program, url, env

    def code(self, lines: str) -> str:
        return PRELUDE + f"URL = {self.url!r}\n" + textwrap.dedent(self.program) + CREDIT + lines

    def run(self, lines: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", self.code(lines)]
        return subprocess.run(command, env=self.env, text=True, capture_output=True, timeout=120)


CREDIT = """
def credit(amount=10, then=lambda: None, key="inv-1"):
    with opened() as tx, semel.effect("credit", key=key, tx=tx, amount=amount) as e:
        if e.fresh:
            execute(tx, f"UPDATE account SET balance = balance + {amount}")
            e.reply = {"credited": amount}
        then()
    return e.fresh, e.reply
def balance():
    with opened() as tx:
        return [row[0] for row in execute(tx, "SELECT balance FROM account")][0]
def kill():
    os.kill(os.getpid(), 9)
"""

SETUP = """
def setup():
    with opened() as tx:
        execute(tx, "CREATE TABLE account (balance INTEGER)")
        execute(tx, "INSERT INTO account VALUES (0)")
"""

SQLITE = (
    SETUP
    + """
import sqlite3, contextlib
@contextlib.contextmanager
def opened():
    connection = sqlite3.connect(URL)
    try:
        with connection:
            yield connection
    finally:
        connection.close()
def execute(tx, sql):
    return tx.execute(sql).fetchall()
"""
)
SQLITE_KEPT = (
    SETUP
    + """
import sqlite3, contextlib
connection = sqlite3.connect(URL)
def opened():
    return connection
def execute(tx, sql):
    return tx.execute(sql).fetchall()
"""
)
SQLITE_BY_HAND = (
    SETUP
    + """
import sqlite3, contextlib
connection = sqlite3.connect(URL, isolation_level=None)
@contextlib.contextmanager
def opened():
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
def execute(tx, sql):
    return tx.execute(sql).fetchall()
"""
)
PSYCOPG = (
    SETUP
    + """
import psycopg
def opened():
    return psycopg.connect(URL)   # commits or rolls back, and closes
def execute(tx, sql):
    cursor = tx.execute(sql)
    return cursor.fetchall() if cursor.description else []
"""
)
PSYCOPG_KEPT = (
    SETUP
    + """
import psycopg
connection = psycopg.connect(URL)
import contextlib
@contextlib.contextmanager
def opened():
    with connection.transaction():
        yield connection
def execute(tx, sql):
    cursor = tx.execute(sql)
    return cursor.fetchall() if cursor.description else []
"""
)
SESSION = (
    SETUP
    + """
import sqlalchemy, contextlib
from sqlalchemy.orm import Session
engine = sqlalchemy.create_engine(URL)
@contextlib.contextmanager
def opened():
    with Session(engine) as s, s.begin():
        yield s
def execute(tx, sql):
    result = tx.execute(sqlalchemy.text(sql))
    return result.fetchall() if result.returns_rows else []
"""
)
CORE = SESSION.replace("with Session(engine) as s, s.begin():", "with engine.begin() as s:")


def sqlite_bank(program: str, prefix: str = "") -> Callable[[Path, Any], tuple[str, str]]:
    return lambda path, postgres: (program, prefix + str(path / "bank.db"))


BANKS: dict[str, Any] = {
    "sqlite3": sqlite_bank(SQLITE),
    "sqlite3, one connection": sqlite_bank(SQLITE_KEPT),
    "sqlite3, begin by hand": sqlite_bank(SQLITE_BY_HAND),
    "session, sqlite": sqlite_bank(SESSION, "sqlite:///"),
    "core, sqlite": sqlite_bank(CORE, "sqlite:///"),
    "psycopg": lambda path, postgres: (PSYCOPG, postgres()),
    "psycopg, one connection": lambda path, postgres: (PSYCOPG_KEPT, postgres()),
    "session, psycopg": lambda path, postgres: (SESSION, postgres().replace("postgresql", "postgresql+psycopg")),
    "core, psycopg": lambda path, postgres: (CORE, postgres().replace("postgresql", "postgresql+psycopg")),
}


@pytest.fixture(params=BANKS)
def bank(request: pytest.FixtureRequest, tmp_path: Path, env: dict[str, str]) -> Bank:
    for driver in ("session", "core"):
        if request.param.startswith(driver):
            pytest.importorskip("sqlalchemy")

    def database() -> str:
        import psycopg

        url: str = request.getfixturevalue("postgres")
        name = f"bank_{abs(hash(request.node.nodeid))}"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(f"CREATE DATABASE {name}")
        return url.rpartition("/")[0] + "/" + name

    made = Bank(*BANKS[request.param](tmp_path, database), env)
    assert said(made.run("setup()")) == []
    return made


def said(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


FRESH, REPEAT = "(True, {'credited': 10})", "(False, {'credited': 10})"


def states(ledger: Ledger) -> list[str]:
    return [effect["state"] for effect in ledger.effects()]


def test_a_credit_and_its_repeat(bank: Bank, semel_ledger: Ledger) -> None:
    assert said(bank.run("print(credit()); print(credit()); print(balance())")) == [FRESH, REPEAT, "10"]
    assert said(bank.run("print(credit()); print(balance())")) == [REPEAT, "10"]
    assert states(semel_ledger) == ["applied"]


def test_an_exception_rolls_both_back(bank: Bank, semel_ledger: Ledger) -> None:
    lines = """
def fail(): raise LookupError("in the block")
try:
    credit(then=fail)
except LookupError as error:
    print(error)
print(balance()); print(credit()); print(credit()); print(balance())
"""
    assert said(bank.run(lines)) == ["in the block", "0", FRESH, REPEAT, "10"]
    assert states(semel_ledger) == ["applied"]


def test_a_rollback_at_the_end_of_a_process(bank: Bank, semel_ledger: Ledger) -> None:
    lines = """
def fail(): raise LookupError("in the block")
try:
    credit(then=fail)
except LookupError as error:
    print(error)
"""
    assert said(bank.run(lines)) == ["in the block"]
    assert states(semel_ledger) == ["not_applied"]
    assert said(bank.run("print(credit()); print(balance())")) == [FRESH, "10"]


def test_a_crash_inside_leaves_nothing(bank: Bank, semel_ledger: Ledger) -> None:
    assert bank.run("credit(then=kill)").returncode == -signal.SIGKILL
    assert said(bank.run("print(balance()); print(credit()); print(balance())")) == ["0", FRESH, "10"]
    assert states(semel_ledger) == ["applied"]


def test_a_crash_after_the_commit_credits_once(bank: Bank, semel_ledger: Ledger) -> None:
    # No settlement leaves this process, as if it had died right after the commit.
    lost = "from semel import _tx; _tx._settle = lambda *_: kill()\ncredit(); credit(key='other')"
    assert bank.run(lost).returncode == -signal.SIGKILL
    assert said(bank.run("print(credit()); print(balance())")) == [REPEAT, "10"]
    assert states(semel_ledger)[0] == "applied"


def test_an_exception_that_is_caught_inside_the_transaction(bank: Bank) -> None:
    lines = """
with opened() as tx:
    try:
        with semel.effect("credit", key="inv-1", tx=tx, amount=10) as e:
            execute(tx, "UPDATE account SET balance = balance + 10")
            raise LookupError
    except LookupError:
        pass
print(balance()); print(credit()[0]); print(balance())
"""
    # The caller chose to commit: it counts as done.
    assert said(bank.run(lines)) == ["10", "False", "10"]


def test_twice_in_one_transaction(bank: Bank) -> None:
    lines = """
with opened() as tx:
    for _ in range(2):
        with semel.effect("credit", key="inv-1", tx=tx, amount=10) as e:
            if e.fresh:
                execute(tx, "UPDATE account SET balance = balance + 10")
                e.reply = {"credited": 10}
        print(e.fresh, e.reply)
print(balance()); print(credit())
"""
    assert said(bank.run(lines)) == ["True {'credited': 10}", "False {'credited': 10}", "10", REPEAT]


def test_processes_at_once(bank: Bank, semel_ledger: Ledger) -> None:
    code = bank.code("print(credit()[1])")
    children = [
        subprocess.Popen([sys.executable, "-c", code], env=bank.env, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    assert [child.communicate(timeout=120)[0] for child in children] == ["{'credited': 10}\n"] * 6
    assert said(bank.run("print(balance())")) == ["10"]


def test_a_savepoint_that_is_rolled_back(tmp_path: Path, postgres: str, semel_ledger: Ledger) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as setup:
        setup.execute("DROP TABLE IF EXISTS credit")
        setup.execute("CREATE TABLE credit (n int)")
    with psycopg.connect(postgres) as tx:
        for n in range(2):
            try:
                with tx.transaction(), semel.effect("savepoint", key=str(tmp_path), tx=tx) as e:
                    assert e.fresh
                    tx.execute("INSERT INTO credit VALUES (%s)", (n,))
                    if n == 0:
                        raise LookupError
            except LookupError:
                pass
    with psycopg.connect(postgres) as tx:
        assert tx.execute("SELECT n FROM credit").fetchall() == [(1,)]
        with semel.effect("savepoint", key=str(tmp_path), tx=tx) as e:
            assert not e.fresh
    assert states(semel_ledger) == ["applied"]


def test_a_savepoint_of_a_session(tmp_path: Path, postgres: str, semel_ledger: Ledger) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    from sqlalchemy.orm import Session

    engine = sqlalchemy.create_engine(postgres.replace("postgresql", "postgresql+psycopg"))
    with Session(engine) as s, s.begin():
        try:
            with s.begin_nested(), semel.effect("nested", key=str(tmp_path), tx=s) as e:
                assert e.fresh
                raise LookupError
        except LookupError:
            pass
    assert states(semel_ledger) == ["not_applied"]
    with Session(engine) as s, s.begin():
        with s.begin_nested(), semel.effect("nested", key=str(tmp_path), tx=s) as e:
            assert e.fresh
    assert states(semel_ledger) == ["applied"]
    engine.dispose()


def test_an_async_session(tmp_path: Path, semel_ledger: Ledger) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip("aiosqlite")
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

    async def main() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{tmp_path}/bank.db")
        async with engine.begin() as connection:
            await connection.execute(sqlalchemy.text("CREATE TABLE credit (n int)"))
        for fresh in False, True, True:
            try:
                async with AsyncSession(engine) as s, s.begin(), semel.effect("credit", key="inv-1", tx=s) as e:
                    if e.fresh:
                        await s.execute(sqlalchemy.text("INSERT INTO credit VALUES (1)"))
                        e.reply = "credited"
                    if not fresh:
                        raise LookupError
            except LookupError:
                assert e.fresh
            else:
                assert e.reply == "credited"
        async with engine.connect() as connection:
            rows = await connection.execute(sqlalchemy.text("SELECT n FROM credit"))
            assert rows.fetchall() == [(1,)]
            with pytest.raises(semel.InvalidCall), semel.effect("credit", key="2", tx=connection):
                pass
        async with engine.begin() as connection, semel.effect("credit", key="core", tx=connection) as e:
            assert e.fresh
        await engine.dispose()

    asyncio.run(main())
    with semel.effect("other", n=1):
        pass
    assert sorted(states(semel_ledger)) == ["applied"] * 3


def test_an_async_connection_of_psycopg(tmp_path: Path, postgres: str, semel_ledger: Ledger) -> None:
    import psycopg

    async def main() -> None:
        for n in range(2):
            async with await psycopg.AsyncConnection.connect(postgres) as tx:
                async with semel.effect("async", key=str(tmp_path), tx=tx) as e:
                    assert e.fresh is (n == 0)
                    if e.fresh:
                        await tx.execute("SELECT 1")
                        e.reply = n
                assert e.reply == 0

    asyncio.run(main())
    assert states(semel_ledger) == ["applied"]


def test_a_connection_that_commits_by_itself_is_refused(tmp_path: Path, postgres: str, semel_ledger: Ledger) -> None:
    import psycopg
    import sqlalchemy

    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path}/bank.db", isolation_level="AUTOCOMMIT")
    with psycopg.connect(postgres, autocommit=True) as one, engine.connect() as two:
        for tx in (sqlite3.connect(tmp_path / "x.db", isolation_level=None), one, two):
            with pytest.raises(semel.InvalidCall, match="transaction"), semel.effect("credit", key="1", tx=tx):
                raise AssertionError
    with pytest.raises(semel.InvalidCall, match="takes a connection"), semel.effect("credit", key="1", tx=object()):
        raise AssertionError
    assert semel_ledger.effects() == []
