"""The lifecycle of one call: begin, act, settle. `once`, `effect` and `call` all go through here."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from . import _json
from ._errors import Crash, InDoubt, InvalidCall, LedgerUnavailable, Refused, ReplyLost, SemelError, error_from
from ._key import visible
from ._run import Current, enter, run_name
from ._steps import Ask, Block, Do, Step, Steps, Wait
from ._transport import Holder, Lost, before_close, transport

BEGIN_TRIES = 3  # one, and two more with the same nonce
SETTLE_SECONDS = 5  # how long a settlement is sent again
_LATER = "The probe did not find it, and it may still be carried out. Make the same call again later: it looks again."
_BAD_REQUEST = 400
_REPLY_REFUSED = (_BAD_REQUEST, 413)  # what the ledger says of a reply that it cannot keep
_WHY_MAX = 500  # characters; the API's limit
_LEAVE_SECONDS = 1  # at exit, for begins whose caller went away

Types = tuple[type[BaseException], ...]


@dataclass
class Call:
    """One intended effect."""

    name: str
    arguments: dict[str, Any]
    options: dict[str, Any]  # further members of the begin
    act: Step
    codec: _json.Codec
    refused: Types = ()
    pause: Types = ()
    look: Callable[[], Any] | None = None
    quiet: str | None = None

    def body(self) -> dict[str, Any]:
        body = {"action": f"fn:{visible(self.name)}", "arguments": self.arguments, "run": run_name(), **self.options}
        return {name: value for name, value in body.items() if value is not None}


@dataclass
class Result:
    """How a call ended."""

    reply: Any
    fresh: bool
    answer: dict[str, Any] = field(default_factory=dict)


after_act: Callable[[str], None] | None = None  # for tests
pending: Callable[[], Steps] | None = None  # what the transactional tier still has to settle


def lifecycle(call: Call) -> Steps:
    looked = False
    while True:
        try:
            begun = yield from begin(call)
            if begun.get("outcome") == "run":
                return (yield from attempt(call, begun))
            return (yield from recorded(call, begun))
        except InDoubt as doubt:
            if call.look is None or looked or doubt.effect_id is None:
                raise
            looked = True
            found = yield from look(call, call.look, doubt)
            if found is not None:
                return found


def begin(call: Call) -> Steps:
    """Asks for the right to make one attempt. Raises what semel answers instead."""
    if pending is not None:
        yield from pending()
    body = call.body()
    body["nonce"] = os.urandom(16).hex()
    for tries_left in reversed(range(BEGIN_TRIES)):
        try:
            status, answer = yield Ask("POST", "/begin", body)
            break
        except Lost as lost:
            if not tries_left:
                raise LedgerUnavailable(
                    f"{call.name} did not run: semel cannot be reached ({lost}). Safe to retry: yes.",
                    action=call.name,
                    code="ledger_unavailable",
                    retry="yes",
                ) from lost
        except Exception:
            raise
        except BaseException:
            give_back(body)
            raise
    if status == 200:
        return answer
    if answer.get("code") == "upstream_refused":
        said = answer.get("data")
        raise _told(Refused(said if isinstance(said, str) else answer.get("what_happened") or "an equal call was refused"))
    raise error_from(status, answer, call.name)


def give_back(body: dict[str, Any]) -> None:
    """The caller went away while its begin was under way: a claim that it gets is settled as never used."""

    def work() -> None:
        try:
            _, answer = transport().ask("POST", "/begin", body)  # the same nonce, so the same claim
            if answer.get("claim"):
                why = "the caller went away before the call"
                transport().ask("POST", "/settle", {"claim": answer["claim"], "outcome": "not_applied", "why": why})
        except Exception:
            pass  # the claim lapses into a doubt by itself

    thread = threading.Thread(target=work, name="semel-give-back", daemon=True)
    thread.start()
    _leaving[:] = [one for one in _leaving if one.is_alive()] + [thread]
    before_close(_wait_for_leaving)


_leaving: list[threading.Thread] = []


def _wait_for_leaving() -> None:
    for thread in _leaving:
        thread.join(_LEAVE_SECONDS)


def attempt(call: Call, begun: dict[str, Any]) -> Steps:
    way = transport()
    if not isinstance(way, Holder):
        return (yield from attempt_on(call, begun))
    # A claim in process is its ledger's. Another one may be in use when it is settled.
    begun["way"] = way
    way.acting += 1
    try:
        return (yield from attempt_on(call, begun))
    finally:
        way.acting -= 1


def attempt_on(call: Call, begun: dict[str, Any]) -> Steps:
    claim, holder = begun.get("claim"), os.getpid()
    if isinstance(call.act, Block):
        call.act.begun = begun
    outer = enter(
        Current(begun["effect_id"], begun["idempotency_key"], begun["attempt"], begun["possible_repeat"], run_name())
    )
    try:
        try:
            value = yield call.act
            if hasattr(value, "__await__") or isinstance(value, Generator):
                getattr(value, "close", lambda: None)()
                raise TypeError(f"{call.name} gave a {type(value).__name__}, which acts later: protect what does that")
            if after_act is not None:
                after_act(call.name)
        finally:
            enter(outer)
    except BaseException as error:
        if claim is None or isinstance(error, Crash) or os.getpid() != holder:
            raise  # a read; a test; or a fork inside the function, where the claim is the parent's
        if isinstance(error, call.pause):
            yield from settle_quietly(claim, "awaiting_input", error)
            raise
        if isinstance(error, GeneratorExit):
            # Nothing can be waited for any more: this very generator is being closed.
            why = "the caller went away while it ran"
            with contextlib.suppress(Lost, SemelError):
                transport().ask("POST", "/settle", {"claim": claim, "outcome": "in_doubt", "why": why})
            raise
        # The refusal of another guarded call inside of this one says nothing about this one.
        if isinstance(error, (Refused, *call.refused)) and not _is_told(error):
            yield from settle(call, begun, {"outcome": "not_applied", "why": describe(error)}, error)
            _told(error)
            raise
        if not isinstance(error, Exception):
            yield from settle_quietly(claim, "in_doubt", error)
            raise
        status, answer = yield from settle(call, begun, {"outcome": "in_doubt", "why": describe(error)}, error)
        if answer.get("ok"):  # somebody has seen meanwhile that it happened
            return (yield from recorded(call, answer))
        raise error_from(status, answer, call.name) from error
    if claim is None or os.getpid() != holder:
        return Result(value, True, begun)
    try:
        reply = {"reply": _json.checked_text(call.codec.dump(value))}
        lost: Exception | None = None
    except Exception as error:
        reply, lost = {}, error
    status, answer = yield from settle(call, begun, {"outcome": "applied", **reply})
    if status in _REPLY_REFUSED and reply:
        if status == _BAD_REQUEST:
            lost = _json.NotJson(str(answer.get("detail")))
        status, answer = yield from settle(call, begun, {"outcome": "applied"})
    if not answer.get("ok"):
        raise error_from(status, answer, call.name)
    if lost is not None:
        raise reply_lost(call, answer, f"Its reply cannot be stored: {lost}.", value) from lost
    return Result(value, True, answer)


def _told(error: BaseException) -> BaseException:
    """Marks an exception by which a call of semel has ended."""
    with contextlib.suppress(Exception):
        error._semel_told = True  # type: ignore[attr-defined]
    return error


def _is_told(error: BaseException) -> bool:
    return isinstance(error, SemelError) or getattr(error, "_semel_told", False)


def settle(call: Call, begun: dict[str, Any], what: dict[str, Any], cause: BaseException | None = None) -> Steps:
    """Records how the attempt ended. Sends it again while the ledger does not take it."""
    until = time.monotonic() + SETTLE_SECONDS
    while True:
        try:
            status, answer = yield Ask("POST", "/settle", {"claim": begun["claim"], **what}, begun.get("way"))
            trouble = str(answer.get("detail") or status)
            code = answer.get("code")
            if status < 400 or code not in (None, "ledger_unavailable") or status in _REPLY_REFUSED and "reply" in what:
                return status, answer
            if status < 500:
                until = 0.0  # the same again would be refused again
        except (Lost, LedgerUnavailable) as error:
            answer = error.answer if isinstance(error, LedgerUnavailable) else {}
            trouble = str(answer.get("what_happened") or error)
        if time.monotonic() >= until:
            next_step = "Do not call it again. Check whether it happened, or tell the user that it needs a decision."
            raise LedgerUnavailable(
                f"{call.name} has run, and its outcome could not be recorded: {trouble.rstrip('.')}. "
                f"Safe to retry: no. {next_step}",
                effect_id=begun["effect_id"],
                action=call.name,
                code="ledger_unavailable",
                next_step=next_step,
            ) from cause
        yield Wait(0.1)


def settle_quietly(claim: str, outcome: str, error: BaseException) -> Steps:
    """Records it if that works. The caller has to go on as it is; what is not recorded becomes a doubt by itself."""
    try:
        yield Ask("POST", "/settle", {"claim": claim, "outcome": outcome, "why": describe(error)})
    except (Lost, SemelError):
        pass


def recorded(call: Call, answer: dict[str, Any]) -> Steps:
    """The reply of an earlier call."""
    data = answer.get("data")
    if data is None and answer.get("effect_id") and not _json.gives_only_none(call.codec):
        # null is a reply, and also stands for a reply that nobody knows or keeps.
        _, kept = yield Ask("GET", f"/effects/{answer['effect_id']}/reply")
        if kept.get("reply") == "unknown" and isinstance(call.act, Block):
            return Result(None, False, answer)  # most blocks have no reply
        if kept.get("reply") != "kept":
            raise reply_lost(call, answer, f"Its reply is not known: {answer.get('reason')}.", None)
    try:
        return Result(call.codec.load(data), False, answer)
    except Exception as error:
        raise reply_lost(call, answer, f"Its recorded reply does not fit: {error}.", data) from error


def look(call: Call, probe: Callable[[], Any], doubt: InDoubt) -> Steps:
    """Asks the probe about a doubt. Gives the result if it happened, None if the call may begin again."""
    asked = time.monotonic()
    try:
        value = yield Do(probe)
    except Exception as error:
        # Unknown. A probe that never works must not look like none.
        warnings.warn(f"the probe of {call.name} failed, so the doubt stays: {describe(error)}", stacklevel=2)
        raise doubt from doubt.__cause__
    body: dict[str, Any]
    lost: Exception | None = None
    if value is None and call.options.get("by"):
        raise doubt from doubt.__cause__  # the doubt may be about other arguments than those that were looked for
    if value is None:
        body = {"found": "no", "asked_ms_ago": int((time.monotonic() - asked) * 1000) + 1}
        if call.quiet is not None:
            body["quiet"] = call.quiet
    else:
        body = {"found": "yes"}
        try:
            body["reply"] = call.codec.dump(value)
        except Exception as error:
            lost = error
    try:
        status, answer = yield Ask("POST", f"/effects/{doubt.effect_id}/probe", body)
    except Lost:
        raise doubt from doubt.__cause__
    if status == 200 and value is not None:
        if lost is not None:
            raise reply_lost(call, answer, f"Its reply cannot be stored: {lost}.", value) from lost
        return Result(value, False, answer)
    if answer.get("is_it_safe_to_retry") == "wait":
        early = {**doubt.answer, **answer, "code": "in_doubt", "next_step": _LATER}
        raise error_from(status, early, call.name) from doubt.__cause__
    return None  # it counts; or somebody else has decided meanwhile, and the next begin says what


def reply_lost(call: Call, answer: dict[str, Any], why: str, value: Any) -> ReplyLost:
    next_step = "Do not call it again for its reply. Read what you need from the tool."
    lost = ReplyLost(
        f"{call.name} happened. {why} Safe to retry: no. {next_step}",
        effect_id=answer.get("effect_id"),
        action=call.name,
        code="reply_unknown",
        next_step=next_step,
        answer=answer,
    )
    lost.value = value
    return lost


def describe(error: BaseException) -> str:
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:
        said = type(error).__name__
    return said[:_WHY_MAX].encode("utf-8", "replace").decode()  # half a character is no JSON


def types(given: Any, what: str) -> Types:
    """Exception types, given as one or several."""
    several = given if isinstance(given, (tuple, list)) else (given,)
    for one in several:
        if not (isinstance(one, type) and issubclass(one, BaseException)):
            raise InvalidCall(f"{what} takes exception types, not {one!r}.")
    return tuple(several)
