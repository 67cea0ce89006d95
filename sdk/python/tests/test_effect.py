from __future__ import annotations

import asyncio

import pytest
from conftest import World

import semel

pytestmark = pytest.mark.usefixtures("semel_ledger")


def test_a_block(world: World) -> None:
    for fresh in True, False:
        with semel.effect("send_welcome", user=42) as e:
            assert e.fresh is fresh
            if e.fresh:
                world.act(42)
                assert semel.current().effect_id == e.id
                assert semel.current().idempotency_key == e.idempotency_key
                e.reply = {"sent": True}
        assert e.reply == {"sent": True}
    assert world.acts() == ["42"]


def test_an_async_block(world: World) -> None:
    async def main() -> None:
        for fresh in True, False:
            async with semel.effect("send_welcome", key="42") as e:
                assert e.fresh is fresh
                if e.fresh:
                    await asyncio.sleep(0)
                    world.act(42)
                    e.reply = "sent"
            assert e.reply == "sent"

    asyncio.run(main())
    assert world.acts() == ["42"]


def test_a_block_that_raises_is_a_doubt(world: World) -> None:
    with pytest.raises(semel.InDoubt) as caught, semel.effect("send", user=1):
        world.act(1)
        raise ConnectionResetError
    assert isinstance(caught.value.__cause__, ConnectionResetError)
    with pytest.raises(semel.InDoubt), semel.effect("send", user=1):
        world.act(1)
    assert world.acts() == ["1"]


def test_a_block_that_refuses(world: World) -> None:
    for error in semel.Refused, LookupError:
        with pytest.raises(error), semel.effect("send", user=1, refused=LookupError):
            world.act(1)
            raise error("not now")
    with semel.effect("send", user=1) as e:
        world.act(2)
    assert e.fresh
    assert world.acts() == ["1", "1", "2"]


def test_an_exception_in_a_block_that_is_not_fresh_goes_on(world: World) -> None:
    with semel.effect("send", user=1):
        world.act(1)
    with pytest.raises(LookupError), semel.effect("send", user=1):
        raise LookupError
    assert world.acts() == ["1"]


def test_again(world: World) -> None:
    for _ in range(2):
        with semel.effect("send", key="1", again="they asked") as e:
            if e.fresh:
                world.act(1)
    assert world.acts() == ["1"]


def test_a_block_is_entered_once() -> None:
    block = semel.effect("send", user=1)
    with block:
        pass
    with pytest.raises(semel.InvalidCall), block:
        pass


def test_a_doubt_about_one_key_holds_no_other(world: World) -> None:
    with pytest.raises(semel.InDoubt), semel.effect("credit", key="inv-1"):
        world.act("inv-1")
        raise TimeoutError
    with semel.effect("credit", key="inv-2") as e:
        assert e.fresh
        world.act("inv-2")
    with pytest.raises(semel.InDoubt), semel.effect("credit", key="inv-1"):
        world.act("inv-1 again")
    assert world.acts() == ["inv-1", "inv-2"]
