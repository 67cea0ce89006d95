"""What adapters use."""

from __future__ import annotations

import asyncio

import pytest
from conftest import World

import semel
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")


class Interrupt(Exception):
    """A framework's own pause."""


def test_call(world: World) -> None:
    def act() -> dict[str, int]:
        world.act(1)
        return {"n": 1}

    for call_id in "call_a", "call_a":
        assert semel.call("fn:charge", {"n": 1}, act, run="r", call_id=call_id) == {"n": 1}
    assert world.acts() == ["1"]


def test_acall_and_a_reply_of_the_framework(world: World) -> None:
    class Message:
        def __init__(self, text: str) -> None:
            self.text = text

    async def act() -> Message:
        world.act(1)
        return Message("done")

    async def main() -> list[str]:
        replies = [
            await semel.acall(
                "charge", {"n": 1}, act, run="r", key="1", dump=lambda m: {"text": m.text}, load=lambda d: Message(**d)
            )
            for _ in range(2)
        ]
        return [reply.text for reply in replies]

    assert asyncio.run(main()) == ["done", "done"]
    assert world.acts() == ["1"]


def test_a_pause_is_no_doubt(world: World) -> None:
    def act() -> str:
        world.act(1)
        if len(world.acts()) == 1:
            raise Interrupt
        return "approved"

    with pytest.raises(Interrupt):
        semel.call("charge", {"n": 1}, act, run="r", pause=Interrupt)
    assert semel.call("charge", {"n": 1}, act, run="r", pause=(Interrupt,)) == "approved"
    assert world.acts() == ["1", "1"]


def test_state_says_what_a_call_would_meet(world: World, semel_ledger: Ledger) -> None:
    def lost() -> None:
        world.act(1)
        raise TimeoutError

    assert semel.state("charge", {"n": 1}, "r") == "unseen"
    with pytest.raises(semel.InDoubt) as caught:
        semel.call("charge", {"n": 1}, lost, run="r")
    assert semel.state("charge", {"n": 1}, "r") == "in_doubt"
    assert asyncio.run(semel.astate("charge", {"n": 1}, "r")) == "in_doubt"
    assert caught.value.effect_id
    asyncio.run(semel.aresolve(caught.value.effect_id, "applied", "the customer said so", {"n": 1}))
    assert semel.call("charge", {"n": 1}, lost, run="r") == {"n": 1}
    assert world.acts() == ["1"]
