"""The transactional tier: the effect and its record commit together, in the user's own database.

The table `semel_done` has a row for each effect, written through the caller's transaction. To the ledger it is an
upstream that honours our idempotency key for ever: after a doubt the same key meets the row, or its absence. So a
settlement that comes late, or never, costs nothing, and `in_doubt` is always a safe one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from typing import Any

from . import _effect
from ._effect import Call, Result
from ._errors import InvalidCall, LedgerUnavailable, Refused, SemelError
from ._run import Current, enter, run_name
from ._steps import Ask, Block, Do, Step, Steps, drive
from ._transport import Lost, before_close

FOR_EVER = "3650d"
TURNS_MAX = 16  # twins that may be rolled back before this call gives up
CREATE = "CREATE TABLE IF NOT EXISTS semel_done (id VARCHAR(255) PRIMARY KEY, reply TEXT)"
INSERT = "INSERT INTO semel_done (id) VALUES (?) ON CONFLICT DO NOTHING"
UPDATE = "UPDATE semel_done SET reply = ? WHERE id = ?"
SELECT = "SELECT reply FROM semel_done WHERE id = ?"
# CREATE TABLE IF NOT EXISTS fails in PostgreSQL when two do it at once, and would take the transaction with it.
PG_MISSING = "SELECT to_regclass('semel_done') IS NULL, current_setting('search_path')"
PG_TABLE = "SELECT to_regclass('semel_done') IS NOT NULL"
SQLITE_TABLE = "SELECT count(*) FROM sqlite_master WHERE name = 'semel_done'"
PG_LOCK = "SELECT pg_advisory_xact_lock(hashtext('semel_done'))"

APPLIED, NOT_APPLIED, IN_DOUBT = "applied", "not_applied", "in_doubt"


class Database:
    """One open transaction of the caller."""

    postgres = False
    in_task = False  # its execute gives an awaitable
    key = ""  # of the row
    insert = INSERT
    search_path = ""

    def execute(self, sql: str, *values: Any) -> Any:
        """Gives (rows, count of rows changed)."""
        raise NotImplementedError

    def ready(self) -> Any:
        """Refuses a connection that commits each statement by itself. May give an awaitable."""

    def inserted(self, rows: Any) -> None:
        """Sees what the insert returned."""

    def verdict(self, key: str) -> str | None:
        """How the transaction ended, None while it is open."""
        raise NotImplementedError

    def watch(self) -> None:
        """Hears how the transaction ends, where the driver tells. Called before the row is written."""

    def same(self, other: Database) -> bool:
        raise NotImplementedError


def no_transaction() -> InvalidCall:
    return InvalidCall(
        "tx= needs a transaction, and this connection commits each statement by itself. Nothing ran. Begin one first.",
    )


class Pending:
    """An attempt whose row is written and whose transaction is open, as far as we know."""

    def __init__(self, call: Call, begun: dict[str, Any], database: Database) -> None:
        self.identity = json.dumps(call.body(), sort_keys=True)
        self.claim: str = begun["claim"]
        self.key: str = begun["idempotency_key"]
        self.effect_id: str = begun["effect_id"]
        self.database = database
        database.key = self.key
        self.in_block = True
        self.reply: dict[str, Any] = {}


class Look(Step):
    """Looks how a transaction ended, on a thread if a loop is running: it may open a connection."""

    def __init__(self, pending: Pending) -> None:
        self._pending = pending

    def run(self) -> str | None:
        return self._pending.database.verdict(self._pending.key)

    async def arun(self) -> str | None:
        import asyncio

        return await asyncio.to_thread(self.run)


_pending: list[Pending] = []
_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    # A child must not look at the parent's connections, nor take its lock as held.
    os.register_at_fork(after_in_child=lambda: _forget())


def _forget() -> None:
    global _lock
    _lock = threading.Lock()
    _pending.clear()


def lifecycle_in_transaction(call: Call, tx: Any, in_task: bool) -> Steps:
    from ._databases import database_of

    database = database_of(tx)
    if database.in_task and not in_task:
        raise InvalidCall(f"{call.name}: an async transaction needs `async with`. Nothing ran.")
    opened = database.ready()
    if opened is not None:
        yield Do(lambda: opened)
    call.options = {**call.options, "keyed_for": FOR_EVER}
    _effect.pending = settle_ended
    before_close(_flush)

    earlier = _in_same_transaction(call, database)
    if earlier is not None:
        yield from _prepare(database)  # a savepoint that was rolled back may have taken the table with it
        row = yield Do(lambda: database.execute(SELECT, earlier.key))
        if row[0]:
            return Result(_read(row[0]), False, {"effect_id": earlier.effect_id})
        yield from _settle(earlier, NOT_APPLIED)  # a savepoint was rolled back
    for turns_left in reversed(range(TURNS_MAX)):
        try:
            begun = yield from _effect.begin(call)
            break
        except Refused:
            # A twin that this call waited for was rolled back. That says nothing about this transaction.
            if not turns_left:
                raise
    if begun.get("outcome") != "run":
        return (yield from _effect.recorded(call, begun))
    return (yield from _attempt(call, begun, database))


def _in_same_transaction(call: Call, database: Database) -> Pending | None:
    identity = json.dumps(call.body(), sort_keys=True)
    for one in list(_pending):
        if one.identity == identity and one.database.same(database) and one.database.verdict(one.key) is None:
            return one
    return None


def _attempt(call: Call, begun: dict[str, Any], database: Database) -> Steps:
    this = Pending(call, begun, database)
    try:
        yield from _prepare(database)
        database.watch()
        rows, inserted = yield Do(lambda: database.execute(database.insert, this.key))
        database.inserted(rows)
        row = None
        if not inserted:
            row, _ = yield Do(lambda: database.execute(SELECT, this.key))
    except BaseException as error:  # nothing has acted yet
        yield from _effect.settle_quietly(this.claim, NOT_APPLIED, error)
        raise
    if not inserted:
        # An earlier attempt was committed, and the ledger did not hear of it.
        reply = _read(row)
        yield from _effect.settle(call, begun, {"outcome": APPLIED, "reply": reply})
        return Result(reply, False, begun)
    with _lock:
        _pending.append(this)
    assert isinstance(call.act, Block)
    call.act.begun = begun
    outer = enter(Current(begun["effect_id"], this.key, begun["attempt"], begun["possible_repeat"], run_name()))
    try:
        try:
            value = yield call.act
            if _effect.after_act is not None:
                _effect.after_act(call.name)
        finally:
            enter(outer)
        try:
            data = call.codec.dump(value)
        except Exception as error:
            # The transaction is open, so this block can still be undone: better than a reply that nobody can read.
            raise InvalidCall(
                f"{call.name}: its reply cannot be stored: {error}. This exception rolls the transaction back.",
                action=call.name,
            ) from error
        this.reply = {"reply": data}
        yield Do(lambda: database.execute(UPDATE, json.dumps(data), this.key))
        return Result(value, True, begun)
    finally:
        # Whether it raised does not matter: the transaction says what happened.
        this.in_block = False


def _prepare(database: Database) -> Steps:
    if database.postgres:
        rows, _ = yield Do(lambda: database.execute(PG_MISSING))
        database.search_path = rows[0][1]
        if not rows[0][0]:
            return
        yield Do(lambda: database.execute(PG_LOCK))
    yield Do(lambda: database.execute(CREATE))


def settle_ended() -> Steps:
    """Tells the ledger of the transactions that have ended."""
    for one in list(_pending):
        if one.in_block:
            continue
        try:
            verdict = yield Look(one)
            if verdict is not None:
                yield from _settle(one, verdict)
        except (Lost, SemelError):
            pass  # the next call tries again; the row is what counts


def _settle(one: Pending, verdict: str) -> Steps:
    with _lock:
        if one not in _pending:
            return
        _pending.remove(one)
    body: dict[str, Any] = {"claim": one.claim, "outcome": verdict}
    if verdict == APPLIED:
        body.update(one.reply)
    else:
        rolled_back = verdict == NOT_APPLIED
        body["why"] = "the transaction was rolled back" if rolled_back else "the end of its transaction is unknown"
    try:
        yield Ask("POST", "/settle", body)
    except (Lost, LedgerUnavailable):
        with _lock:
            _pending.append(one)
        raise


def _flush() -> None:
    drive(settle_ended())


def settle_now() -> None:
    """For drivers that tell of a commit, inside of their event."""
    if "asyncio" in sys.modules:
        import asyncio

        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            from ._steps import adrive

            task = loop.create_task(adrive(settle_ended()))
            _tasks.add(task)
            task.add_done_callback(_tasks.discard)
            return
    _flush()


_tasks: set[Any] = set()


def _read(rows: Any) -> Any:
    text = rows[0][0]
    return None if text is None else json.loads(text)
