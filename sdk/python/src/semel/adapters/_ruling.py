"""The question about a doubt, and a person's answer to it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._errors import InDoubt, InvalidCall

_CONFLICT = 409


def question(doubt: InDoubt, tool: str, args: dict[str, Any]) -> dict[str, Any]:
    """The answer is `{**question, "verdict": "applied" or "not_applied", "reason": …, "reply": …}`."""
    return {
        "effect_id": doubt.effect_id,
        "attempt": doubt.answer.get("attempt"),
        "tool": tool,
        "args": args,
        "message": str(doubt),
    }


def ruling(answer: Any, doubt: InDoubt) -> dict[str, Any] | None:
    """The arguments of `resolve`, if the answer is about this doubt."""
    # Frameworks give an answer again after a crash. "It never happened", said of the first attempt, must not decide
    # about the second.
    if not isinstance(answer, dict) or answer.get("verdict") not in ("applied", "not_applied"):
        return None
    if (answer.get("effect_id"), answer.get("attempt")) != (doubt.effect_id, doubt.answer.get("attempt")):
        return None
    return {
        "effect_id": doubt.effect_id,
        "verdict": answer["verdict"],
        "reason": str(answer.get("reason") or "decided by a person"),
        "reply": answer.get("reply") if answer["verdict"] == "applied" else None,
    }


@contextlib.contextmanager
def unless_decided() -> Iterator[None]:
    """Somebody may have decided meanwhile, or another of several equal calls has. The next call says what."""
    try:
        yield
    except InvalidCall as error:
        if error.answer.get("status") != _CONFLICT:
            raise
