"""For tests: a ledger of their own, lost answers and crashes.

The pytest fixture `semel_ledger` is a `Ledger` in the test's tmp_path.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import Crash

if TYPE_CHECKING:
    from pathlib import Path

try:
    import pytest
except ImportError:  # Ledger works without it
    pytest = None  # type: ignore[assignment]

__all__ = ["Crash", "Ledger", "semel_ledger"]
_OURS = ("SEMEL_SERVER", "SEMEL_LEDGER", "SEMEL_POLICY", "SEMEL_RUN_ID", "SEMEL_EFFECT_ID")


class Ledger:
    """A ledger in a directory of its own; `use()` makes it the one of this process."""

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.path = os.path.join(os.fspath(directory), "ledger.db")

    @contextlib.contextmanager
    def use(self) -> Iterator[Ledger]:
        """All calls inside go to this ledger, under an empty policy."""
        from . import _transport
        from ._settings import settings

        policy = os.path.join(os.path.dirname(self.path), "semel.toml")
        open(policy, "a").close()
        before = _transport.chosen()
        _transport.use(settings(self.path, policy))
        try:
            yield self
        finally:
            _transport.use(before)

    def effects(self) -> list[dict[str, Any]]:
        """All effects, oldest first."""
        from ._adapt import _asked
        from ._steps import Ask, drive

        found: list[dict[str, Any]] = []
        page: dict[str, Any] = {"next": ""}
        while page["next"] is not None:
            cursor = f"&cursor={page['next']}" if page["next"] else ""
            page = drive(_asked(Ask("GET", f"/effects?limit=200{cursor}"), None))
            found += page["items"]
        return found[::-1]

    def ran(self, name: str) -> int:
        """How many attempts of the function the ledger has seen."""
        return sum(len(effect["attempts"]) for effect in self.effects() if effect.get("action") == f"fn:{name}")

    @contextlib.contextmanager
    def lose_answer(self, name: str) -> Iterator[None]:
        """The function acts, and its answer is lost: it seems to raise a TimeoutError."""

        def lose(ran: str) -> None:
            if ran == name:
                raise TimeoutError(f"the answer of {name} was lost, as the test wants")

        with _after_act(lose):
            yield

    @contextlib.contextmanager
    def crash_before_settle(self, name: str | None = None) -> Iterator[None]:
        """The function acts, and the process is as if killed: `Crash` leaves the block, and nothing is settled."""
        from . import _transport

        def crash(ran: str) -> None:
            if name is None or ran == name:
                _transport.close(dies=True)  # what was claimed through it is left behind
                raise Crash(ran)

        with _after_act(crash):
            yield


@contextlib.contextmanager
def _after_act(work: Any) -> Iterator[None]:
    from . import _effect

    outer, _effect.after_act = _effect.after_act, work
    try:
        yield
    finally:
        _effect.after_act = outer


if pytest is not None:

    @pytest.fixture
    def semel_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
        """A ledger in tmp_path, for this test alone."""
        for name in _OURS:
            monkeypatch.delenv(name, raising=False)
        # Away from the user's own policy and state.
        monkeypatch.setenv("SEMEL_STATE_DIR", str(tmp_path / "semel"))
        with Ledger(tmp_path).use() as ledger:
            yield ledger
