"""The way to semel: one per process, opened at the first call.

A forked child gives up the way that it inherited and opens its own.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

from ._settings import Settings

Answer = tuple[int, dict[str, Any]]


class Lost(Exception):
    """The connection broke. Whether the request arrived is unknown."""


class Transport(Protocol):
    in_process: bool

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer: ...

    async def aask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer: ...

    def close(self, dies: bool = False) -> None:
        """Ends it. Claims that were not settled become doubts: at once if the process dies with it, as in tests."""

    def abandon(self) -> None:
        """Drops what a forked child inherited, and writes nothing."""


@runtime_checkable
class Holder(Protocol):
    """A transport that holds the ledger in this process, and keeps it while a call acts."""

    acting: int

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer: ...

    async def aask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer: ...


_settings = Settings()
_open: Transport | None = None
_pid: int | None = None  # the process that opened it
_watching = False
_inherits = False  # a parent of this process had a ledger open in process
_opening = threading.RLock()  # also held while pipes are made, so that no fork sees half of them
_at_close: list[Callable[[], None]] = []
places: dict[str, str] = {}  # of the functions that were called on this ledger, by name


def transport() -> Transport:
    global _open, _pid
    way = _open
    if way is not None and _pid == os.getpid():
        return way
    with _opening:
        if _open is not None and _pid != os.getpid():
            _abandon(_open)  # a fork that ran no handlers
            _open = None
        if _open is None:
            _watch()
            server = _settings.server()
            if server is not None:
                from ._server import Server

                _open = Server(server)
            else:
                _open = _local()
            _pid = os.getpid()
        return _open


def _local() -> Transport:
    """In this process, unless its parent had a ledger open there: SQLite cannot be opened again after such a fork."""
    if not _inherits and _settings.in_process:
        try:
            from ._in_process import InProcess
        except ImportError:
            pass  # a build without the module
        else:
            return InProcess(_settings, _opening)
    from ._sidecar import Sidecar

    return Sidecar(_settings, _opening)


def use(chosen: Settings) -> None:
    """Closes the way that is open; the next call opens another."""
    global _settings
    with _opening:
        close()
        _settings = chosen


def chosen() -> Settings:
    return _settings


def before_close(work: Callable[[], None]) -> None:
    if work not in _at_close:
        _at_close.append(work)


def close(dies: bool = False) -> None:
    global _open
    places.clear()
    if _open is not None and _pid == os.getpid():
        for work in _at_close:
            work()
        way, _open = _open, None
        way.close(dies)


def _watch() -> None:
    global _watching
    if not _watching:
        _watching = True
        atexit.register(close)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=lambda: _opening.acquire(),
                after_in_parent=lambda: _opening.release(),
                after_in_child=_after_fork,
            )


def _after_fork() -> None:
    global _open, _opening
    _opening = threading.RLock()
    way, _open = _open, None
    if way is not None:
        _abandon(way)


def _abandon(way: Transport) -> None:
    global _inherits
    _inherits = _inherits or way.in_process
    way.abandon()
