"""The transactional tier on sqlite3."""

from __future__ import annotations

from typing import Any

from ._tx import APPLIED, IN_DOUBT, NOT_APPLIED, SELECT, Database, no_transaction


class Sqlite(Database):
    def __init__(self, connection: Any, sqlite3: Any) -> None:
        self._connection, self._sqlite3 = connection, sqlite3
        self._path = ""

    def execute(self, sql: str, *values: Any) -> Any:
        cursor = self._connection.execute(sql, values)
        return cursor.fetchall(), cursor.rowcount

    def ready(self) -> Any:
        connection = self._connection
        # With isolation_level None nothing begins by itself. (Python 3.12: autocommit True.)
        by_itself = getattr(connection, "autocommit", -1)
        if not connection.in_transaction and (
            by_itself is True or (by_itself is not False and connection.isolation_level is None)
        ):
            raise no_transaction()
        for _, name, path in connection.execute("PRAGMA database_list"):
            if name == "main":
                self._path = path or ""

    def verdict(self, key: str) -> str | None:
        try:
            open_still = self._connection.in_transaction
        except self._sqlite3.ProgrammingError:
            open_still = False  # closed
        # Another connection sees what is committed, and nothing else.
        if self._path:
            committed = self._committed(key)
            if committed:
                return APPLIED
        else:
            committed = None
        # Its own connection sees all that it wrote: without the row, it was rolled back.
        try:
            there = self._has(self._connection, key)
        except self._sqlite3.ProgrammingError:  # closed, or another thread's
            there = None
        except self._sqlite3.Error:
            return None
        if there is False:
            return NOT_APPLIED
        if open_still:
            return None
        if there:
            return APPLIED
        return NOT_APPLIED if committed is False else IN_DOUBT

    def _committed(self, key: str) -> bool | None:
        from pathlib import Path

        try:
            other = self._sqlite3.connect(Path(self._path).as_uri() + "?mode=ro", uri=True, timeout=0)
            try:
                return self._has(other, key)
            finally:
                other.close()
        except self._sqlite3.Error:
            return None

    def _has(self, connection: Any, key: str) -> bool:
        try:
            return connection.execute(SELECT, (key,)).fetchone() is not None
        except self._sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return False  # it was made in the same transaction
            raise

    def same(self, other: Database) -> bool:
        return isinstance(other, Sqlite) and other._connection is self._connection
