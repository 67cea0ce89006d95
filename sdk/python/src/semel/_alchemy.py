"""The transactional tier on SQLAlchemy 2, over SQLite and PostgreSQL."""

from __future__ import annotations

import weakref
from typing import Any

from ._errors import InvalidCall
from ._tx import APPLIED, IN_DOUBT, NOT_APPLIED, PG_TABLE, SELECT, SQLITE_TABLE, Database, no_transaction, settle_now


class Alchemy(Database):
    def __init__(self, connection: Any, session: Any, sqlalchemy: Any) -> None:
        self._connection, self._session, self._sqlalchemy = connection, session, sqlalchemy
        self._root: Any = None
        self.key = ""
        self.committing = self.rolled_back = False
        self.there = True

    def execute(self, sql: str, *values: Any) -> Any:
        return _fetch(self._connection.execute(self._text(sql), self._named(values)))

    def ready(self) -> Any:
        if self._connection is None:
            self._connection = self._session.connection()
        self._check()

    def _check(self) -> None:
        connection, dialect = self._connection, self._connection.dialect
        if dialect.name not in ("sqlite", "postgresql"):
            raise InvalidCall(f"tx= does not know {dialect.name}. Nothing ran.")
        level = connection.get_execution_options().get("isolation_level") or getattr(
            dialect, "_on_connect_isolation_level", None
        )
        if level == "AUTOCOMMIT":
            raise no_transaction()
        self.postgres = dialect.name == "postgresql"

    def watch(self) -> None:
        if not self._connection.in_transaction():
            raise no_transaction()
        self._root = self._connection.get_transaction()
        _watch(self._connection, self._sqlalchemy).entries.append(self)
        if self._session is not None:
            _tell(self._session, self._sqlalchemy)

    def verdict(self, key: str) -> str | None:
        if self._root is None or self._connection.get_transaction() is self._root:
            return None  # also after a failed commit, until it is rolled back
        if self.committing and not self.rolled_back:
            return APPLIED if self.there else NOT_APPLIED
        if self.rolled_back and not self.committing:
            return NOT_APPLIED
        return IN_DOUBT  # a commit that failed, or a connection that was lost

    def same(self, other: Database) -> bool:
        return (
            isinstance(other, Alchemy)
            and other._connection is self._connection
            and self._root is other._connection.get_transaction()
        )

    def commits(self, after_savepoint: bool) -> None:
        """Hears of the commit just before it is sent."""
        if after_savepoint:  # the row may have gone with a savepoint, and the table with it
            has_table = self._connection.execute(self._text(PG_TABLE if self.postgres else SQLITE_TABLE)).scalar()
            if has_table:
                row = self._connection.execute(self._text(SELECT), self._named((self.key,))).first()
            self.there = bool(has_table) and row is not None
        self.committing = True

    @property
    def open(self) -> bool:
        return self._connection.get_transaction() is self._root

    def _text(self, sql: str) -> Any:
        for number in range(sql.count("?")):
            sql = sql.replace("?", f":v{number}", 1)
        return self._sqlalchemy.text(sql)

    def _named(self, values: tuple[Any, ...]) -> dict[str, Any]:
        return {f"v{number}": value for number, value in enumerate(values)}


class AsyncAlchemy(Alchemy):
    in_task = True

    def __init__(self, tx: Any, sqlalchemy: Any) -> None:
        super().__init__(getattr(tx, "sync_connection", None), getattr(tx, "sync_session", None), sqlalchemy)
        self._tx = tx
        self._async: Any = tx

    async def ready(self) -> Any:
        if self._session is not None:
            self._async = await self._tx.connection()
            self._connection = self._async.sync_connection
        self._check()

    async def execute(self, sql: str, *values: Any) -> Any:
        return _fetch(await self._async.execute(self._text(sql), self._named(values)))


def _fetch(result: Any) -> Any:
    return (result.fetchall() if result.returns_rows else []), result.rowcount


class Watch:
    """Hears how the transactions of one connection end."""

    def __init__(self, connection: Any, event: Any) -> None:
        self.entries: list[Alchemy] = []
        self._savepoints = False
        event.listen(connection, "commit", self._commit)
        event.listen(connection, "rollback", self._rollback)
        event.listen(connection, "rollback_savepoint", self._rollback_savepoint)

    def _commit(self, _: Any) -> None:
        for entry in self._now():
            entry.commits(self._savepoints)
        self._savepoints = False

    def _rollback(self, _: Any) -> None:
        for entry in self._now():
            entry.rolled_back = True
        self._savepoints = False

    def _rollback_savepoint(self, *_: Any) -> None:
        self._savepoints = True

    def _now(self) -> list[Alchemy]:
        self.entries = [entry for entry in self.entries if entry.open]
        return self.entries


_watches: weakref.WeakKeyDictionary[Any, Watch] = weakref.WeakKeyDictionary()
_sessions: weakref.WeakSet[Any] = weakref.WeakSet()


def _watch(connection: Any, sqlalchemy: Any) -> Watch:
    if connection not in _watches:
        _watches[connection] = Watch(connection, sqlalchemy.event)
    return _watches[connection]


def _tell(session: Any, sqlalchemy: Any) -> None:
    if session not in _sessions:
        _sessions.add(session)
        sqlalchemy.event.listen(session, "after_commit", _ended)
        sqlalchemy.event.listen(session, "after_rollback", _ended)


def _ended(session: Any) -> None:
    if not session.in_nested_transaction():
        settle_now()
