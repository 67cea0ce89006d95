"""Bad input is a named exception, before anything runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Python, World

import semel
from semel.testing import Ledger


def test_a_typo_in_a_key_fails_at_import() -> None:
    with pytest.raises(semel.InvalidCall, match="invoise"):

        @semel.once(key="invoice-{invoise}")
        def charge(invoice: str) -> None: ...

    with pytest.raises(semel.InvalidCall, match="recipient"):

        @semel.once(by=["recipient"])
        def mail(to: str) -> None: ...

    for key in ("", "{", "{0}"):
        with pytest.raises(semel.InvalidCall):
            semel.once(key=key)(lambda invoice: None)
    with pytest.raises(semel.InvalidCall):
        semel.once(lambda invoice: None)


def test_a_generator_is_refused_at_the_call(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def stream(n: int) -> Iterator[int]:
        world.act(n)
        yield n

    @semel.once
    async def astream(n: int) -> Any:
        world.act(n)
        yield n

    for fn in (stream, astream):
        with pytest.raises(semel.InvalidCall, match="generator"):
            fn(1)
    assert world.acts() == []
    assert semel_ledger.effects() == []


NOT_JSON: list[Any] = [object(), {1, 2}, b"x", float("nan"), float("inf"), {1: 2}, (n for n in ()), 10**500, lambda: 0]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: type(value).__name__)
def test_an_argument_that_is_no_json_is_refused(semel_ledger: Ledger, world: World, value: Any) -> None:
    @semel.once
    def charge(n: int, more: Any) -> None:
        world.act(n)

    with pytest.raises(semel.InvalidCall, match="'more'"):
        charge(1, value)
    with pytest.raises(semel.InvalidCall):
        with semel.effect("charge", n=value):
            world.act(1)
    with pytest.raises(semel.InvalidCall):
        semel.call("charge", {"n": value}, lambda: world.act(1))
    assert world.acts() == []
    assert semel_ledger.effects() == []


def test_an_argument_that_contains_itself_is_refused(semel_ledger: Ledger, world: World) -> None:
    more: list[Any] = []
    more.append(more)
    with pytest.raises(semel.InvalidCall):
        semel.once(world.act)(more)
    assert world.acts() == []


def test_key_and_by_leave_arguments_out(semel_ledger: Ledger, world: World) -> None:
    @semel.once(key="{n}")
    def keyed(n: int, session: object) -> None:
        world.act(n)

    @semel.once(by=["n"])
    def named(n: int, session: object) -> None:
        world.act(n)

    for fn in (keyed, named):
        fn(1, object())
        fn(1, object())
        with pytest.raises(semel.InvalidCall):
            fn(object(), object())  # type: ignore[arg-type]
    assert world.acts() == ["1", "1"]


@pytest.mark.parametrize("value", [None, ""])
def test_a_key_without_a_value_is_refused(semel_ledger: Ledger, world: World, value: Any) -> None:
    @semel.once(key="invoice-{n}")
    def charge(n: Any) -> None:
        world.act(n)

    with pytest.raises(semel.InvalidCall):
        charge(value)
    with pytest.raises(semel.InvalidCall):
        semel.effect("charge", key="")
    assert world.acts() == []


def test_a_call_that_is_too_large_is_refused(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def charge(text: str) -> None:
        world.act(1)

    with pytest.raises(semel.InvalidCall, match="4 MiB"):
        charge("x" * (5 << 20))
    charge("small")  # and the way is still open
    assert world.acts() == ["1"]


@pytest.mark.parametrize("address", ["mysql://db/x", "http://semel.example.com", "", "://x"])
def test_a_wrong_address_is_refused_at_once(address: str) -> None:
    with pytest.raises(semel.LedgerUnavailable):
        semel.configure(ledger=address)


REFUSED = """
@semel.once
def charge(n: int) -> None:
    act(n)
try:
    charge(1)
except semel.LedgerUnavailable as error:
    print(error.code, str(error))
"""


def refused(python: Python, world: World, **env: str) -> str:
    done = python(REFUSED, **env)
    assert done.returncode == 0, done.stderr
    assert done.stdout, done.stderr
    assert world.acts() == []
    return str(done.stdout)


def test_a_missing_binary(python: Python, world: World) -> None:
    said = refused(python, world, SEMEL_BIN="/no/such/semel", SEMEL_SDK="sidecar")
    assert said.startswith("binary_missing")
    assert "SEMEL_BIN" in said


def test_a_binary_that_is_something_else(python: Python, world: World) -> None:
    for other in ("/bin/cat", "/bin/true", "/bin/false"):
        refused(python, world, SEMEL_BIN=other, SEMEL_SDK="sidecar")


def test_a_ledger_in_a_file_that_is_none(python: Python, world: World, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no ledger" * 1000)
    refused(python, world, SEMEL_LEDGER=str(tmp_path / "text"))


def test_a_ledger_on_a_server_that_is_not_there(python: Python, world: World) -> None:
    refused(python, world, SEMEL_LEDGER="postgres://semel@127.0.0.1:1/x?sslmode=disable")


def test_an_address_given_twice(python: Python, world: World) -> None:
    refused(python, world, SEMEL_SERVER="https://semel.example.com")


def test_a_server_that_is_not_there(python: Python, world: World) -> None:
    said = refused(python, world, SEMEL_SERVER="http://127.0.0.1:1", SEMEL_LEDGER="")
    assert "did not run" in said


def test_a_policy_that_does_not_hold_together(python: Python, world: World, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[rule]]\nmatch = 1\n")
    refused(python, world, SEMEL_POLICY=str(tmp_path / "bad.toml"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_that_is_read_only(python: Python, world: World, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    refused(python, world, SEMEL_LEDGER=str(tmp_path / "closed" / "ledger.db"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_ledger_on_no_disk(python: Python, world: World) -> None:
    refused(python, world, SEMEL_LEDGER="/dev/full")
