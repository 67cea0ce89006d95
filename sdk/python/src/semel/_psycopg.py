"""The transactional tier on psycopg 3."""

from __future__ import annotations

from typing import Any

from ._tx import APPLIED, IN_DOUBT, INSERT, NOT_APPLIED, Database, no_transaction

_IDLE = 0  # of libpq's transaction status


class Psycopg(Database):
    postgres = True
    insert = INSERT + " RETURNING pg_current_xact_id()::text"

    def __init__(self, connection: Any, psycopg: Any) -> None:
        self._connection, self._psycopg = connection, psycopg
        self._address = ""
        self._transaction: str | None = None

    def execute(self, sql: str, *values: Any) -> Any:
        with self._connection.cursor(row_factory=self._psycopg.rows.tuple_row) as cursor:
            cursor.execute(sql.replace("?", "%s"), values)
            return (cursor.fetchall() if cursor.description else []), cursor.rowcount

    def ready(self) -> Any:
        connection = self._connection
        if connection.autocommit and connection.pgconn.transaction_status == _IDLE:
            raise no_transaction()
        # Kept now: a closed connection no longer tells.
        info = connection.info
        self._address = self._psycopg.conninfo.make_conninfo(info.dsn, password=info.password)

    def inserted(self, rows: Any) -> None:
        if rows:
            self._transaction = rows[0][0]

    def verdict(self, key: str) -> str | None:
        # The server knows how a transaction ended. It is not asked through the caller's connection: that would begin
        # a transaction there, perhaps beside another thread.
        try:
            with self._psycopg.connect(self._address, autocommit=True) as other:
                other.execute("SELECT set_config('search_path', %s, false)", (self.search_path,))
                status, there = other.execute(
                    "SELECT pg_xact_status(%s::xid8), EXISTS (SELECT FROM semel_done WHERE id = %s)",
                    (self._transaction, key),
                ).fetchone()
        except self._psycopg.errors.UndefinedTable:
            status, there = self._status(), False
        except self._psycopg.Error:
            return None
        if there:
            return APPLIED
        if status == "in progress":
            return None
        return IN_DOUBT if status is None else NOT_APPLIED

    def _status(self) -> Any:
        # The table was made in this very transaction.
        try:
            with self._psycopg.connect(self._address, autocommit=True) as other:
                return other.execute("SELECT pg_xact_status(%s::xid8)", (self._transaction,)).fetchone()[0]
        except self._psycopg.Error:
            return "in progress"

    def same(self, other: Database) -> bool:
        return isinstance(other, Psycopg) and other._connection is self._connection


class AsyncPsycopg(Psycopg):
    in_task = True

    async def execute(self, sql: str, *values: Any) -> Any:
        async with self._connection.cursor(row_factory=self._psycopg.rows.tuple_row) as cursor:
            await cursor.execute(sql.replace("?", "%s"), values)
            return (await cursor.fetchall() if cursor.description else []), cursor.rowcount
