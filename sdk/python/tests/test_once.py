from __future__ import annotations

import asyncio
import inspect

import pytest
from conftest import World

import semel
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")


def test_a_repeat_gets_the_recorded_reply(world: World) -> None:
    @semel.once(key="invoice-{invoice}")
    def charge(invoice: str, amount: int) -> dict[str, int]:
        world.act(invoice)
        return {"amount": amount}

    with semel.run("order-42"):
        assert charge("1001", 4900) == {"amount": 4900}
        assert charge("1001", amount=4900) == {"amount": 4900}
    assert charge("1001", 4900) == {"amount": 4900}  # a key holds in every run
    assert charge("1002", 1) == {"amount": 1}
    assert world.acts() == ["1001", "1002"]


def test_a_task_gets_it_too(world: World) -> None:
    @semel.once
    async def send(user: int) -> str:
        await asyncio.sleep(0)
        world.act(user)
        return f"sent to {user}"

    async def main() -> list[str]:
        return [await send(42), await send(42)]

    assert inspect.iscoroutinefunction(send)
    assert asyncio.run(main()) == ["sent to 42"] * 2
    assert world.acts() == ["42"]


def test_the_same_reason_is_the_same_repeat(world: World) -> None:
    @semel.once(key="{n}")
    def act(n: int) -> int:
        world.act(n)
        return len(world.acts())

    assert act(7) == 1
    assert act.again("the customer asked")(7) == 2
    assert act.again("the customer asked")(7) == 2
    assert len(world.acts()) == 2
    with pytest.raises(semel.InvalidCall):
        act.again("")


def test_other_arguments_under_a_key_are_drift(world: World) -> None:
    @semel.once(key="{invoice}")
    def charge(invoice: str, amount: int) -> None:
        world.act(amount)

    charge("1", 100)
    with pytest.raises(semel.Drift) as caught:
        charge("1", 200)
    assert caught.value.code == "drift"
    assert caught.value.effect_id
    assert world.acts() == ["100"]


def test_keys_of_two_functions_are_two_keys(world: World) -> None:
    def first(n: int) -> None:
        world.act("first")

    def second(n: int) -> None:
        world.act("second")

    for fn in first, second:
        semel.once(key="{n}")(fn)(1)
    assert world.acts() == ["first", "second"]


def test_by_names_what_makes_two_calls_the_same(world: World) -> None:
    @semel.once(by=["to", "subject"])
    def mail(to: str, subject: str, body: str) -> None:
        world.act(to)

    with semel.run("r1"):
        mail("ann", "hello", "one")
        mail("ann", "hello", "in other words")
        mail("bob", "hello", "one")
    with semel.run("r2"):
        mail("ann", "hello", "one")
    assert world.acts() == ["ann", "bob", "ann"]


def test_any_exception_is_a_doubt_and_nothing_runs_again(world: World) -> None:
    @semel.once
    def charge(n: int) -> int:
        world.act(n)
        raise TimeoutError("no answer")

    with pytest.raises(semel.InDoubt) as caught:
        charge(1)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert caught.value.retry == "no"
    assert "try again" not in str(caught.value)
    with pytest.raises(semel.InDoubt) as met:
        charge(1)
    assert met.value.effect_id == caught.value.effect_id
    assert world.acts() == ["1"]


def test_a_refusal_goes_on_as_it_is_and_the_next_call_runs(world: World) -> None:
    class CardError(Exception):
        pass

    @semel.once(refused=(CardError,))
    def charge(n: int) -> str:
        world.act(n)
        if len(world.acts()) == 1:
            raise CardError("declined")
        if len(world.acts()) == 2:
            raise semel.Refused("not now")
        return "charged"

    with pytest.raises(CardError, match="declined"):
        charge(1)
    with pytest.raises(semel.Refused, match="not now"):
        charge(1)
    assert charge(1) == "charged"
    assert world.acts() == ["1"] * 3


@pytest.mark.parametrize("exception", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_goes_on_and_leaves_a_doubt(world: World, exception: type[BaseException]) -> None:
    @semel.once
    def charge(n: int) -> None:
        world.act(n)
        raise exception

    with pytest.raises(exception):
        charge(1)
    with pytest.raises(semel.InDoubt):
        charge(1)
    assert world.acts() == ["1"]


def test_a_cancelled_task_leaves_a_doubt(world: World) -> None:
    done = asyncio.Event()

    @semel.once
    async def charge(n: int) -> None:
        world.act(n)
        done.set()
        await asyncio.Event().wait()

    async def main() -> None:
        task = asyncio.create_task(charge(1))
        await done.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(semel.InDoubt):
            await charge(1)

    asyncio.run(main())
    assert world.acts() == ["1"]


def test_a_call_that_was_cancelled_while_it_waited_blocks_nobody(world: World) -> None:
    @semel.once
    async def charge(n: int) -> str:
        world.act(n)
        if len(world.acts()) == 1:
            acting.set()
            await go.wait()
            raise semel.Refused("not this time")
        return "charged"

    async def main() -> str:
        first = asyncio.create_task(charge(1))
        await acting.wait()
        second = asyncio.create_task(charge(1))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        go.set()
        with pytest.raises(semel.Refused):
            await first
        return await charge(1)

    acting, go = asyncio.Event(), asyncio.Event()
    assert asyncio.run(main()) == "charged"
    assert world.acts() == ["1", "1"]


def test_a_probe_that_finds_it_gives_its_reply(world: World) -> None:
    @semel.once
    def charge(n: int) -> dict[str, int]:
        world.act(n)
        raise TimeoutError

    @charge.probe(quiet=30)
    def look(n: int) -> dict[str, int] | None:
        return {"found": n}

    assert charge(1) == {"found": 1}
    assert charge(1) == {"found": 1}
    assert world.acts() == ["1"]


def test_a_probe_that_finds_nothing_too_early_does_not_count(world: World) -> None:
    @semel.once
    def charge(n: int) -> None:
        world.act(n)
        raise TimeoutError

    @charge.probe(quiet=30)
    def look(n: int) -> None:
        return None

    with pytest.raises(semel.InDoubt) as caught:
        charge(1)
    assert caught.value.retry == "wait"
    assert "Make the same call again later" in str(caught.value) and "Do not" not in str(caught.value)
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert world.acts() == ["1"]


def test_a_probe_that_raises_knows_nothing(world: World) -> None:
    @semel.once
    async def charge(n: int) -> None:
        world.act(n)
        raise TimeoutError

    @charge.probe
    async def look(n: int) -> None:
        raise ConnectionError

    for _ in range(2):
        with pytest.raises(semel.InDoubt), pytest.warns(UserWarning, match="the probe of charge failed"):
            asyncio.run(charge(1))
    assert world.acts() == ["1"]


def test_a_reply_that_cannot_be_stored_is_settled_first(world: World, semel_ledger: Ledger) -> None:
    class Opaque:
        pass

    @semel.once
    def charge(n: int) -> Opaque:
        world.act(n)
        return Opaque()

    with pytest.raises(semel.ReplyLost) as caught:
        charge(1)
    assert isinstance(caught.value.value, Opaque)
    with pytest.raises(semel.ReplyLost):
        charge(1)
    assert world.acts() == ["1"]
    assert [effect["state"] for effect in semel_ledger.effects()] == ["applied"]


def test_a_reply_that_is_too_large_is_given_once_and_not_kept(world: World) -> None:
    @semel.once
    def read(n: int) -> str:
        world.act(n)
        return "x" * n

    for size in (2 << 20, 6 << 20):
        assert len(read(size)) == size
        with pytest.raises(semel.ReplyLost):
            read(size)
    assert len(world.acts()) == 2


def test_current_is_the_attempt_under_way(world: World) -> None:
    @semel.once
    def outer(n: int) -> list[str]:
        before = semel.current()
        inner(n)
        assert semel.current() == before
        return [before.effect_id, before.idempotency_key]

    @semel.once
    def inner(n: int) -> str:
        return semel.current().effect_id

    with semel.run("r"):
        effect_id, key = outer(1)
        assert inner(1) != effect_id
    assert key.startswith("semel_")
    with pytest.raises(semel.InvalidCall):
        semel.current()


def test_a_method_is_protected_by_its_key(world: World) -> None:
    class Till:
        @semel.once(key="{n}")
        def charge(self, n: int) -> int:
            world.act(n)
            return n

    assert [Till().charge(3), Till().charge(3)] == [3, 3]
    assert world.acts() == ["3"]


def test_the_function_stays_what_frameworks_read() -> None:
    @semel.once(key="{invoice}")
    def charge(invoice: str, amount: int = 1) -> str:
        """Charges."""
        return ""

    assert charge.__name__ == "charge"  # type: ignore[attr-defined]
    assert charge.__doc__ == "Charges."
    assert str(inspect.signature(charge)) == "(invoice: 'str', amount: 'int' = 1) -> 'str'"
    assert inspect.isfunction(charge)


def test_a_name_of_its_own(world: World, semel_ledger: Ledger) -> None:
    charge = semel.once(name="charge")(lambda n: world.act(n))
    charge(1)
    charge(1)
    assert world.acts() == ["1"]
    assert semel_ledger.ran("charge") == 1


def test_a_codec_makes_and_rebuilds_the_reply(world: World) -> None:
    class Points:
        def dump(self, value: complex) -> list[float]:
            return [value.real, value.imag]

        def load(self, data: list[float]) -> complex:
            return complex(*data)

    @semel.once(codec=Points())
    def measure(n: int) -> complex:
        world.act(n)
        return complex(n, 2)

    assert [measure(1), measure(1)] == [1 + 2j, 1 + 2j]
    assert world.acts() == ["1"]


def test_a_tool_that_honours_the_key_is_sent_again(world: World) -> None:
    @semel.once(keyed_for="24h")
    def charge(n: int) -> str:
        world.act(semel.current().idempotency_key)
        if len(world.acts()) == 1:
            raise TimeoutError
        return "charged"

    with pytest.raises(semel.InDoubt):
        charge(1)
    assert charge(1) == "charged"
    first, second = world.acts()
    assert first == second


def test_a_fork_inside_the_function_settles_nothing_for_the_parent(world: World) -> None:
    import os

    @semel.once
    def charge(n: int) -> int:
        child = os.fork()
        if child == 0:
            raise RuntimeError("in the child")
        assert os.waitpid(child, 0)[1] == 0
        world.act(n)
        return n

    parent = os.getpid()
    try:
        replies = [charge(1), charge(1)]
    except RuntimeError:
        os._exit(0 if os.getpid() != parent else 1)
    assert replies == [1, 1]
    assert world.acts() == ["1"]


def test_a_recorded_none_is_a_reply(world: World, semel_ledger: Ledger) -> None:
    @semel.once
    def find(n: int) -> dict[str, int] | None:
        world.act(n)
        return None

    @semel.once
    def plain(n):  # type: ignore[no-untyped-def]
        world.act(n)

    for fn in (find, find, plain, plain):
        assert fn(1) is None
    assert world.acts() == ["1", "1"]


def test_a_reply_that_nobody_knows_is_no_none(world: World, semel_ledger: Ledger) -> None:
    @semel.once
    def find(n: int) -> dict[str, int] | None:
        world.act(n)
        raise TimeoutError

    @semel.once
    def plain(n):  # type: ignore[no-untyped-def]
        world.act(n)
        raise TimeoutError

    @semel.once
    def nothing(n: int) -> None:
        world.act(n)
        raise TimeoutError

    def block(n: int) -> None:
        with semel.effect("block", n=n) as effect:
            assert effect.fresh
            world.act(n)
            raise TimeoutError

    for fn in (find, plain, nothing, block):
        with pytest.raises(semel.InDoubt) as caught:
            fn(1)
        assert caught.value.effect_id
        semel.resolve(caught.value.effect_id, "applied", "seen in the dashboard")
    for fn in (find, plain):
        with pytest.raises(semel.ReplyLost, match="not known"):
            fn(1)
    assert nothing(1) is None
    with semel.effect("block", n=1) as effect:
        assert not effect.fresh
        assert effect.reply is None
    assert world.acts() == ["1"] * 4


def test_functions_of_one_name_in_two_modules_are_refused(world: World) -> None:
    def notify(user: str) -> str:
        world.act(user)
        return "sent"

    mail = semel.once(notify)
    assert mail("ann") == "sent"
    notify.__module__ = "sms"
    with pytest.raises(semel.InvalidCall, match="name="):
        semel.once(notify)("ann")
    sms = semel.once(name="sms")(notify)
    assert sms("ann") == "sent"
    assert world.acts() == ["ann", "ann"]


def test_a_template_without_its_name_is_refused() -> None:
    with pytest.raises(semel.InvalidCall, match="key="):
        semel.once("invoice-{invoice}")  # type: ignore[call-overload]


def test_a_refusal_of_an_inner_call_says_nothing_about_the_outer(world: World, semel_ledger: Ledger) -> None:
    @semel.once(key="{n}")
    def inner(n: str) -> None:
        raise semel.Refused("declined")

    @semel.once(key="{n}")
    def outer(n: str) -> None:
        world.act(n)
        inner(n)

    for _ in range(2):
        with pytest.raises(semel.InDoubt):
            outer("a")
    assert world.acts() == ["a"]


def test_an_inner_doubt_is_no_refusal_of_the_outer_whatever_is_listed(world: World) -> None:
    @semel.once
    def inner() -> None:
        raise TimeoutError

    @semel.once(refused=RuntimeError)
    def outer() -> None:
        world.act("outer")
        inner()

    for _ in range(2):
        with pytest.raises(semel.InDoubt):
            outer()
    assert world.acts() == ["outer"]


def test_a_no_about_other_arguments_does_not_count(world: World) -> None:
    @semel.once(by="invoice")
    def charge(invoice: str, amount: int) -> None:
        world.act(amount)
        raise TimeoutError

    @charge.probe(quiet=0)
    def look(invoice: str, amount: int) -> None:
        return None

    for amount in 100, 200:
        with pytest.raises(semel.InDoubt):
            charge("1", amount)
    assert world.acts() == ["100"]


def test_a_function_that_gives_a_coroutine_is_a_doubt_and_no_success(world: World, semel_ledger: Ledger) -> None:
    async def send() -> None:
        world.act("sent")

    @semel.once
    def call() -> object:
        return send()

    with pytest.raises(semel.InDoubt) as caught:
        call()
    assert world.acts() == []
    assert "acts later" in str(caught.value.__cause__)


def test_an_odd_error_or_reply_leaves_a_doubt_or_a_success_and_no_bad_call(world: World) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    @semel.once
    def fail(error: int) -> None:
        raise [TimeoutError("lost \ud800"), Mute()][error]

    @semel.once
    def reply(n: int) -> str:
        world.act(n)
        return "\ud800"

    for error in 0, 1:
        with pytest.raises(semel.InDoubt):
            fail(error)
    for _ in range(2):
        with pytest.raises(semel.ReplyLost):
            reply(1)
    assert world.acts() == ["1"]


def test_arguments_that_share_a_name_stay_apart(world: World) -> None:
    @semel.once
    def act(a: int, /, **more: int) -> None:
        world.act(f"{a}{sorted(more.items())}".replace(" ", ""))

    act(1, a=2)
    act(3, a=2)
    act(1, a=4)
    assert len(world.acts()) == 3


def test_a_process_that_still_acts_keeps_its_lock(world: World, semel_ledger: Ledger) -> None:
    @semel.once
    def charge(n: int) -> None:
        world.act(n)
        from semel import _transport

        settings = _transport.chosen()
        _transport.use(settings)  # configure() in the middle of a call

    charge(1)
    charge(1)
    assert world.acts() == ["1"]
    assert [effect["state"] for effect in semel_ledger.effects()] == ["applied"]


def test_a_run_in_two_threads(world: World) -> None:
    import threading

    shared, names, both = semel.run("a"), [], threading.Barrier(2)

    def work(own: str) -> None:
        from semel._run import run_name

        with semel.run(own):
            both.wait()
            with shared:
                both.wait()
            names.append((own, run_name()))

    threads = [threading.Thread(target=work, args=(own,)) for own in ("x", "y")]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(names) == [("x", "x"), ("y", "y")]
