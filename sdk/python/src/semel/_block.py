"""`effect`: a block whose effect happens at most once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from . import _json, _key
from ._errors import InvalidCall
from ._once import Exceptions

if TYPE_CHECKING:
    from datetime import timedelta
    from types import TracebackType

    from ._effect import Result
    from ._steps import Steps


class effect:
    """`with effect("send", user=42) as e: if e.fresh: e.reply = send()`; or `async with`.

    The further keywords are the arguments. `tx` is an open transaction: the block's effect and its record then commit
    together: exactly once.
    """

    fresh: bool  # the block has to act
    reply: Any  # set it; on a repeat it is the recorded one
    id: str
    idempotency_key: str | None
    attempt: int | None
    answer: dict[str, Any]

    def __init__(
        self,
        action: str,
        *,
        key: str | None = None,
        tx: Any = None,
        again: str | None = None,
        by: Iterable[str] | None = None,
        refused: Exceptions = (),
        keyed_for: float | str | timedelta | None = None,
        **args: Any,
    ) -> None:
        self._action = action.removeprefix("fn:")
        if not self._action:
            raise InvalidCall("The effect has no name.")
        self._tx, self._refused = tx, refused
        try:
            self._arguments = {name: _json.dump(value) for name, value in args.items()}
        except _json.NotJson as error:
            raise InvalidCall(
                f"{self._action}: an argument is no JSON ({error}). Nothing ran.", action=self._action
            ) from error
        self._options = {
            "class": "consequential",
            "key": None if key is None else _key.wire_key(self._action, key),
            "by": None if by is None else ([by] if isinstance(by, str) else list(by)),
            "keyed_for": None if keyed_for is None else _key.duration(keyed_for),
            "again": again,
        }
        self._steps: Steps | None = None

    def __enter__(self) -> effect:
        from ._steps import drive

        return self._entered(drive(self._begin(False)))

    async def __aenter__(self) -> effect:
        from ._steps import adrive

        return self._entered(await adrive(self._begin(True)))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        from ._steps import drive

        if not self.fresh:
            return False
        return self._left(drive(self._open(), self.reply, error), error)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        from ._steps import adrive

        if not self.fresh:
            return False
        return self._left(await adrive(self._open(), self.reply, error), error)

    def _begin(self, in_task: bool) -> Steps:
        from ._effect import Call, lifecycle, types
        from ._steps import Block

        if self._steps is not None:
            raise InvalidCall(f"{self._action}: a block is entered once.", action=self._action)
        call = Call(
            name=self._action,
            arguments=self._arguments,
            options=self._options,
            act=Block(),
            codec=_json.Plain(),
            refused=types(self._refused, "refused") if self._refused else (),
        )
        if self._tx is None:
            self._steps = lifecycle(call)
        else:
            from ._tx import lifecycle_in_transaction

            self._steps = lifecycle_in_transaction(call, self._tx, in_task)
        return self._steps

    def _open(self) -> Steps:
        assert self._steps is not None
        return self._steps

    def _entered(self, stop: Any) -> effect:
        from ._steps import Block

        self.fresh = isinstance(stop, Block)
        self.answer = stop.begun if self.fresh else stop.answer
        self.reply = None if self.fresh else stop.reply
        self.id = self.answer.get("effect_id") or ""
        self.idempotency_key = self.answer.get("idempotency_key")
        self.attempt = self.answer.get("attempt")
        return self

    def _left(self, result: Result, error: BaseException | None) -> bool:
        # A result in spite of an exception: it is known meanwhile that it happened.
        self.reply, self.answer = result.reply, result.answer
        return error is not None
