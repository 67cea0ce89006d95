"""For adapters, which protect tools that others wrote: `call`, `acall`, `state`, `resolve`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from . import _json, _key
from ._errors import InvalidCall, LedgerUnavailable, error_from
from ._once import Exceptions

if TYPE_CHECKING:
    from datetime import timedelta

    from ._effect import Call
    from ._steps import Steps

T = TypeVar("T")


def call(
    action: str,
    args: dict[str, Any],
    fn: Callable[[], T],
    *,
    run: str | None = None,
    key: str | None = None,
    by: Iterable[str] | None = None,
    call_id: str | None = None,
    again: str | None = None,
    refused: Exceptions = (),
    pause: Exceptions = (),
    keyed_for: float | str | timedelta | None = None,
    dump: Callable[[T], Any] | None = None,
    load: Callable[[Any], T] | None = None,
) -> T:
    """Runs fn for the action, or gives what it gave before.

    pause: exceptions by which the framework asks a person first. Nothing happened then.
    dump, load: make the reply JSON and rebuild it.
    """
    from ._effect import lifecycle
    from ._steps import drive

    made = _call(action, args, fn, run, key, by, call_id, again, refused, pause, keyed_for, dump, load)
    reply: T = drive(lifecycle(made)).reply
    return reply


async def acall(
    action: str,
    args: dict[str, Any],
    fn: Callable[[], Awaitable[T]],
    *,
    run: str | None = None,
    key: str | None = None,
    by: Iterable[str] | None = None,
    call_id: str | None = None,
    again: str | None = None,
    refused: Exceptions = (),
    pause: Exceptions = (),
    keyed_for: float | str | timedelta | None = None,
    dump: Callable[[T], Any] | None = None,
    load: Callable[[Any], T] | None = None,
) -> T:
    """`call` for tasks."""
    from ._effect import lifecycle
    from ._steps import adrive

    made = _call(action, args, fn, run, key, by, call_id, again, refused, pause, keyed_for, dump, load)
    reply: T = (await adrive(lifecycle(made))).reply
    return reply


def state(
    action: str,
    args: dict[str, Any],
    run: str | None = None,
    *,
    key: str | None = None,
    by: Iterable[str] | None = None,
    call_id: str | None = None,
) -> str:
    """What the call would meet: unseen, applied, in_flight, in_doubt, held or refused. Nothing is claimed."""
    from ._steps import drive

    word: str = drive(_state(action, args, run, key, by, call_id))
    return word


async def astate(
    action: str,
    args: dict[str, Any],
    run: str | None = None,
    *,
    key: str | None = None,
    by: Iterable[str] | None = None,
    call_id: str | None = None,
) -> str:
    """`state` for tasks."""
    from ._steps import adrive

    word: str = await adrive(_state(action, args, run, key, by, call_id))
    return word


def resolve(effect_id: str, verdict: str, reason: str, reply: Any = None) -> dict[str, Any]:
    """Carries a person's decision about a doubt: "applied" or "not_applied"."""
    from ._steps import drive

    answer: dict[str, Any] = drive(_resolve(effect_id, verdict, reason, reply))
    return answer


async def aresolve(effect_id: str, verdict: str, reason: str, reply: Any = None) -> dict[str, Any]:
    """`resolve` for tasks."""
    from ._steps import adrive

    answer: dict[str, Any] = await adrive(_resolve(effect_id, verdict, reason, reply))
    return answer


class _Pair:
    """The two halves that an adapter gives."""

    def __init__(self, dump: Callable[[Any], Any] | None, load: Callable[[Any], Any] | None) -> None:
        self._dump, self._load = dump, load

    def dump(self, value: Any) -> Any:
        return _json.dump(value if self._dump is None else self._dump(value))

    def load(self, data: Any) -> Any:
        return data if self._load is None else self._load(data)


def _call(
    action: str,
    args: dict[str, Any],
    fn: Callable[[], Any],
    run: str | None,
    key: str | None,
    by: Iterable[str] | None,
    call_id: str | None,
    again: str | None,
    refused: Exceptions,
    pause: Exceptions,
    keyed_for: Any,
    dump: Any,
    load: Any,
) -> Call:
    from ._effect import Call, types
    from ._steps import Do

    name, arguments = _named(action, args, key, by)
    options = _options(name, run, key, by, call_id)
    options["again"] = again
    options["keyed_for"] = None if keyed_for is None else _key.duration(keyed_for)
    return Call(
        name=name,
        arguments=arguments,
        options=options,
        act=Do(fn),
        codec=_json.Plain() if dump is None and load is None else _Pair(dump, load),
        refused=types(refused, "refused") if refused else (),
        pause=types(pause, "pause") if pause else (),
    )


def _named(action: str, args: dict[str, Any], key: str | None, by: Iterable[str] | None) -> tuple[str, dict[str, Any]]:
    name = action.removeprefix("fn:")
    if not name:
        raise InvalidCall("The action has no name.")
    arguments = {}
    for parameter, value in args.items():
        try:
            arguments[parameter] = _json.dump(value)
        except _json.NotJson as error:
            if parameter not in by if by is not None else key is not None:
                continue
            raise InvalidCall(
                f"{name}: the argument {parameter!r} is no JSON ({error}). Nothing ran.", action=name
            ) from error
    return name, arguments


def _options(
    name: str, run: str | None, key: str | None, by: Iterable[str] | None, call_id: str | None
) -> dict[str, Any]:
    # No class: the policy and the defaults decide about tools that others wrote.
    options: dict[str, Any] = {
        "key": None if key is None else _key.wire_key(name, key),
        "by": None if by is None else ([by] if isinstance(by, str) else list(by)),
        "call_id": call_id,
    }
    if run is not None:
        options["run"] = run
    return options


def _state(
    action: str, args: dict[str, Any], run: str | None, key: str | None, by: Iterable[str] | None, call_id: str | None
) -> Steps:
    from ._run import run_name
    from ._steps import Ask

    name, arguments = _named(action, args, key, by)
    body = {
        "action": f"fn:{name}",
        "arguments": arguments,
        "run": run_name(),
        "dry_run": True,
        **_options(name, run, key, by, call_id),
    }
    answer = yield from _asked(Ask("POST", "/begin", {n: v for n, v in body.items() if v is not None}), name)
    words = {"run": "unseen", "replay": "applied", "wait": "in_flight", "refuse": "refused"}
    if answer["would"] != "hold" or answer.get("code"):
        return answer.get("code") or words[answer["would"]]
    effect = yield from _asked(Ask("GET", f"/effects/{answer['effect_id']}"), name)
    return "in_doubt" if effect.get("state") == "in_doubt" else "held"


def _resolve(effect_id: str, verdict: str, reason: str, reply: Any) -> Steps:
    from ._steps import Ask

    if verdict not in ("applied", "not_applied"):
        raise InvalidCall(f'The verdict is "applied" or "not_applied", not {verdict!r}.')
    body = {"verdict": verdict, "reason": reason}
    if reply is not None:
        try:
            body["reply"] = _json.dump(reply)
        except _json.NotJson as error:
            raise InvalidCall(f"The reply is no JSON: {error}. Nothing was decided.") from error
    return (yield from _asked(Ask("POST", f"/effects/{effect_id}/resolve", body), None))


def _asked(ask: Any, name: str | None) -> Steps:
    """One request that changes nothing, or that may safely come twice."""
    from ._transport import Lost

    for tries_left in (2, 1, 0):
        try:
            status, answer = yield ask
            break
        except Lost as lost:
            if not tries_left:
                raise LedgerUnavailable(
                    f"semel cannot be reached ({lost}). Safe to retry: yes.", code="ledger_unavailable", retry="yes"
                ) from lost
    if status != 200:
        raise error_from(status, answer, name)
    return answer
