from __future__ import annotations

import pytest
from conftest import World

import semel
from semel.testing import Crash, Ledger


def test_a_lost_answer(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def charge(n: int) -> int:
        world.act(n)
        return n

    with semel_ledger.lose_answer("mail"):
        assert charge(1) == 1
    with semel_ledger.lose_answer("charge"), pytest.raises(semel.InDoubt) as caught:
        charge(2)
    assert isinstance(caught.value.__cause__, TimeoutError)
    with pytest.raises(semel.InDoubt):
        charge(2)
    assert world.acts() == ["1", "2"]
    assert semel_ledger.ran("charge") == 2
    assert [effect["state"] for effect in semel_ledger.effects()] == ["applied", "in_doubt"]


def test_a_crash(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def charge(n: int) -> int:
        world.act(n)
        return n

    with semel_ledger.crash_before_settle(), pytest.raises(Crash):
        charge(1)
    with pytest.raises(semel.InDoubt):
        charge(1)
    assert world.acts() == ["1"]
    assert [effect["state"] for effect in semel_ledger.effects()] == ["in_doubt"]


def test_a_person_decides(semel_ledger: Ledger, world: World) -> None:
    @semel.once
    def charge(n: int) -> int:
        world.act(n)
        return n

    for verdict, reply in ("applied", 7), ("not_applied", None):
        n = len(world.acts())
        with semel_ledger.lose_answer("charge"), pytest.raises(semel.InDoubt) as caught:
            charge(n)
        assert caught.value.effect_id
        semel.resolve(caught.value.effect_id, verdict, "seen in the dashboard", reply)
        assert charge(n) == (7 if reply else n)
    assert world.acts() == ["0", "1", "1"]
    with pytest.raises(semel.InvalidCall):
        semel.resolve("ef_1", "perhaps", "")
