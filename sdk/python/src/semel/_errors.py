"""The exceptions that semel raises."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """Raised by a tool: nothing happened, and the call may be made again."""


class Crash(BaseException):
    """For tests: the process is as if killed, so nothing is settled."""


class SemelError(RuntimeError):
    """The base of all that semel raises. It survives pickling."""

    # A RuntimeError, because frameworks repeat on a plain Exception and leave a RuntimeError alone.

    def __init__(
        self,
        message: str,
        *,
        effect_id: str | None = None,
        action: str | None = None,
        code: str | None = None,
        retry: str = "no",
        next_step: str | None = None,
        answer: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.effect_id = effect_id
        self.action = action
        self.code = code
        self.retry = retry  # "yes", "wait" or "no"
        self.next_step = next_step
        self.answer = answer or {}


class Held(SemelError):
    """Nothing was sent: an earlier effect must be decided, or finish, first."""


class InDoubt(Held):
    """It may have happened. Nobody knows yet."""


class InFlight(Held):
    """An equal call is still running."""


class Lookalike(Held):
    """It looks like an earlier effect in other words."""


class Cancelled(Held):
    """Its run was cancelled."""


class Drift(SemelError):
    """The key stands for a call with other arguments."""


class LedgerUnavailable(SemelError):
    """semel cannot work: no ledger, no binary, no permission, or a policy that does not hold together."""


class InvalidCall(SemelError, TypeError):
    """The call cannot be made as it stands. Nothing ran."""

    def __init__(self, message: str, *, code: str | None = "invalid_call", **more: Any) -> None:
        super().__init__(message, code=code, **more)


class ReplyLost(SemelError):
    """It happened, but the record has no reply to give. `value` is the reply, where this call still had it."""

    value: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # The value is often what could not be stored in the first place.
        return type(self), self.args, {k: v for k, v in self.__dict__.items() if k != "value"}


_BY_CODE: dict[str, type[SemelError]] = {
    "in_doubt": InDoubt,
    "budget_spent": InDoubt,
    "in_flight": InFlight,
    "lookalike": Lookalike,
    "cancelled": Cancelled,
    "superseded": Held,
    "held_for_person": Held,
    "refuted": Held,
    "drift": Drift,
    "key_required": InvalidCall,
    "ledger_unavailable": LedgerUnavailable,
    "policy_invalid": LedgerUnavailable,
}


def error_from(status: int, answer: dict[str, Any], action: str | None = None) -> SemelError:
    """The exception that a problem stands for."""
    code = answer.get("code")
    if code is None:
        kind, code = _without_code(status)
    else:
        kind = _BY_CODE.get(code, SemelError)
    retry = answer.get("is_it_safe_to_retry") or ("yes" if status == 503 else "no")
    next_step = answer.get("next_step")
    happened = answer.get("what_happened") or answer.get("detail") or f"semel answered {status}."
    if not happened.endswith("."):
        happened += "."
    message = f"{happened} Safe to retry: {retry}."
    if next_step:
        message += f" {next_step}"
    return kind(
        message,
        effect_id=answer.get("effect_id"),
        action=action,
        code=code,
        retry=retry,
        next_step=next_step,
        answer=answer,
    )


def _without_code(status: int) -> tuple[type[SemelError], str]:
    if status in (401, 403):
        return SemelError, "forbidden"
    if status == 503 or status >= 500:
        return LedgerUnavailable, "ledger_unavailable"
    return InvalidCall, "invalid_call"
