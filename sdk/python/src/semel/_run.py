"""The run that calls belong to, and the attempt that is under way."""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import NamedTuple

from ._errors import InvalidCall

_runs: ContextVar[tuple[str, ...]] = ContextVar("semel_runs", default=())
_current: ContextVar[Current | None] = ContextVar("semel_current", default=None)


class Current(NamedTuple):
    """The attempt that is under way."""

    effect_id: str
    idempotency_key: str  # give it to the tool, if it takes one
    attempt: int
    possible_repeat: bool
    run: str | None


def current() -> Current:
    """The attempt that is under way, inside a protected function or block."""
    now = _current.get()
    if now is None:
        raise InvalidCall("current() is for the inside of a protected call.")
    return now


class run:
    """`with run("order-42"):` names the run of the calls inside. Else it is SEMEL_RUN_ID."""

    def __init__(self, name: str) -> None:
        if not name:
            raise InvalidCall("The run has no name.")
        self.name = name

    def __enter__(self) -> run:
        _runs.set((*_runs.get(), self.name))  # of this thread or task alone
        return self

    def __exit__(self, *_: object) -> None:
        _runs.set(_runs.get()[:-1])


def run_name() -> str | None:
    return next(reversed(_runs.get()), None) or os.environ.get("SEMEL_RUN_ID") or None


def enter(now: Current | None) -> Current | None:
    """Sets the attempt that is under way and returns the outer one."""
    outer = _current.get()
    _current.set(now)
    return outer
