"""The ledger of a `semel serve`, with the same classes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from conftest import Python, World
from servers import TOKEN, Served

import semel


def test_the_same_functions_work(served: Served, world: World) -> None:
    @semel.once(key="{n}")
    def charge(n: int) -> dict[str, int]:
        world.act(n)
        return {"n": n}

    @semel.once
    async def lost(n: int) -> None:
        world.act(n)
        raise TimeoutError

    assert [charge(1), charge(1)] == [{"n": 1}] * 2
    for _ in range(2):
        with pytest.raises(semel.InDoubt):
            asyncio.run(lost(2))
    with pytest.raises(semel.InvalidCall):
        charge("x" * (5 << 20))  # type: ignore[arg-type]
    assert world.acts() == ["1", "2"]


def test_a_forked_child_has_its_own_connections(served: Served, python: Python, world: World) -> None:
    done = python(
        """
        @semel.once(key="{n}")
        def charge(n: int) -> int:
            act(n)
            return n
        charge(1)
        child = os.fork()
        if child == 0:
            assert [charge(1), charge(2)] == [1, 2]
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert [charge(1), charge(2)] == [1, 2]
        """,
        SEMEL_SERVER=served.address,
        SEMEL_TOKEN=TOKEN,
        SEMEL_LEDGER="",
    )
    assert done.returncode == 0, done.stderr
    assert world.acts() == ["1", "2"]


def test_a_server_that_comes_back_gets_the_settlement(served: Served, world: World) -> None:
    @semel.once(key="{n}")
    def charge(n: int) -> int:
        world.act(n)
        served.kill()
        served.start()
        return n

    assert [charge(1), charge(1)] == [1, 1]
    assert world.acts() == ["1"]


def test_a_server_that_stays_away_is_said_to_have_missed_the_outcome(
    served: Served, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semel import _effect

    monkeypatch.setattr(_effect, "SETTLE_SECONDS", 0)

    @semel.once(key="{n}")
    def charge(n: int) -> int:
        world.act(n)
        served.kill()
        return n

    with pytest.raises(semel.LedgerUnavailable, match="has run") as caught:
        charge(1)
    assert caught.value.retry == "no"
    assert caught.value.effect_id
    with pytest.raises(semel.LedgerUnavailable, match="did not run"):
        charge(2)
    assert world.acts() == ["1"]


def test_a_wrong_token_is_named(served: Served, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMEL_TOKEN", "semel_wrong")
    semel.configure(ledger=served.address)
    with pytest.raises(semel.SemelError) as caught:
        semel.call("charge", {}, lambda: world.act(1))
    assert caught.value.code == "forbidden"
    assert world.acts() == []


def test_a_token_in_a_file(served: Served, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN + "\n")
    monkeypatch.delenv("SEMEL_TOKEN")
    monkeypatch.setenv("SEMEL_TOKEN_FILE", str(tmp_path / "token"))
    semel.configure(ledger=served.address)
    semel.call("charge", {}, lambda: world.act(1))
    assert world.acts() == ["1"]
    monkeypatch.setenv("SEMEL_TOKEN_FILE", str(tmp_path / "none"))
    semel.configure(ledger=served.address)
    with pytest.raises(semel.LedgerUnavailable, match="SEMEL_TOKEN_FILE"):
        semel.call("charge", {}, lambda: world.act(1))
