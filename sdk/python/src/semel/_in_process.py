"""The ledger in this process: `semel._native`."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

from . import _native
from ._errors import error_from
from ._settings import Settings
from ._sidecar import AsyncSlot, Sidecar
from ._transport import Answer

_left: list[Any] = []  # ledgers of the parent: closing them here would close them there


class InProcess:
    in_process = True

    def __init__(self, settings: Settings, opening: threading.RLock) -> None:
        try:
            self._ledger = _native.Ledger(settings.ledger, settings.policy)
        except RuntimeError as error:
            code, said, hint = error.args
            raise error_from(503, {"code": code, "what_happened": f"Nothing ran: {said}", "next_step": hint}) from None
        self.acting = 0  # calls whose function is running
        self._beside = Sidecar(settings, opening)  # answers what is asked seldom; it starts when it is

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        if not _is_of_a_call(method, path):
            return self._beside.ask(method, path, body)
        status, text = self._ledger.ask(path, _written(body))
        return status, json.loads(text)

    async def aask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        if not _is_of_a_call(method, path):
            return await self._beside.aask(method, path, body)
        slot = AsyncSlot()

        def answered(status: int, text: str) -> bool:
            slot.set((status, json.loads(text)))
            return True

        self._ledger.ask_then(path, _written(body), answered)
        return await slot.wait_async()

    def close(self, dies: bool = False) -> None:
        self._beside.close()
        self._ledger.flush()
        # While a call acts, it keeps the ledger: the lock says that this process lives, and may still act.
        if dies or not self.acting:
            del self._ledger

    def abandon(self) -> None:
        self._beside.abandon()
        _left.append(self._ledger)
        # One of the descriptors below its directory is the lock that says whether the parent lives.
        below = os.path.join(os.path.realpath(self._ledger.directory), "")
        try:
            numbers = [int(name) for name in os.listdir("/proc/self/fd")]
        except FileNotFoundError:
            return  # no Linux
        for number in numbers:
            try:
                if os.readlink(f"/proc/self/fd/{number}").startswith(below):
                    os.close(number)
            except OSError:
                pass  # the one that listed them


def _is_of_a_call(method: str, path: str) -> bool:
    return method == "POST" and (path in ("/begin", "/settle") or path.endswith("/probe"))


def _written(body: dict[str, Any] | None) -> bytes:
    return _write(body).encode()


_write = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
