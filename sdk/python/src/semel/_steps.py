"""Runs the lifecycle, which is a generator of steps, from synchronous code or from a task.

The lifecycle is written once; only these two drivers know how to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

from ._transport import Holder, transport

Steps = Generator["Step", Any, Any]


class Step:
    """One thing to do outside of the lifecycle."""

    def run(self) -> Any:
        raise NotImplementedError

    async def arun(self) -> Any:
        return self.run()


class Ask(Step):
    """A request to semel; gives (status, answer)."""

    def __init__(
        self, method: str, path: str, body: dict[str, Any] | None = None, way: Holder | None = None
    ) -> None:
        self._request, self._way = (method, path, body), way

    def run(self) -> Any:
        return (self._way or transport()).ask(*self._request)

    async def arun(self) -> Any:
        return await (self._way or transport()).aask(*self._request)


class Do(Step):
    """The user's function."""

    def __init__(self, fn: Callable[[], Any]) -> None:
        self._fn = fn

    def run(self) -> Any:
        return self._fn()

    async def arun(self) -> Any:
        value = self._fn()
        return await value if hasattr(value, "__await__") else value


class Wait(Step):
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def run(self) -> Any:
        time.sleep(self._seconds)

    async def arun(self) -> Any:
        import asyncio

        await asyncio.sleep(self._seconds)


class Block(Step):
    """The body of a with statement: the driver stops here, and is driven on with how the body ended."""

    begun: dict[str, Any]


def drive(steps: Steps, value: Any = None, error: BaseException | None = None) -> Any:
    """Runs the steps to their end, or to a block. `value` or `error` is how the last block ended."""
    while True:
        try:
            step = steps.send(value) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        if isinstance(step, Block):
            return step
        try:
            value, error = step.run(), None
        except BaseException as raised:
            value, error = None, raised


async def adrive(steps: Steps, value: Any = None, error: BaseException | None = None) -> Any:
    while True:
        # After these nothing may be awaited: the loop is ending, or the coroutine is being closed.
        ending = isinstance(error, (GeneratorExit, KeyboardInterrupt, SystemExit))
        try:
            step = steps.send(value) if error is None else steps.throw(error)
        except StopIteration as end:
            return end.value
        if isinstance(step, Block):
            return step
        try:
            value, error = step.run() if ending else await step.arun(), None
        except BaseException as raised:
            value, error = None, raised
