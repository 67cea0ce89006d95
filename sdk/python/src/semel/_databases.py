"""Finds the driver of a transaction."""

from __future__ import annotations

import sys
from typing import Any

from ._errors import InvalidCall
from ._tx import Database


def database_of(tx: Any) -> Database:
    """Recognises a driver by its classes, and imports none that the caller did not."""
    for module, find in (("sqlite3", _sqlite), ("psycopg", _psycopg), ("sqlalchemy", _sqlalchemy)):
        if module in sys.modules:
            database = find(tx, sys.modules[module])
            if database is not None:
                return database
    raise InvalidCall(
        f"tx= takes a connection of sqlite3 or psycopg 3, or a connection or session of SQLAlchemy 2, "
        f"not a {type(tx).__module__}.{type(tx).__qualname__}. Nothing ran.",
    )


def _sqlite(tx: Any, sqlite3: Any) -> Database | None:
    if not isinstance(tx, sqlite3.Connection):
        return None
    from ._sqlite import Sqlite

    return Sqlite(tx, sqlite3)


def _psycopg(tx: Any, psycopg: Any) -> Database | None:
    if not isinstance(tx, (psycopg.Connection, psycopg.AsyncConnection)):
        return None
    from ._psycopg import AsyncPsycopg, Psycopg

    return (Psycopg if isinstance(tx, psycopg.Connection) else AsyncPsycopg)(tx, psycopg)


def _sqlalchemy(tx: Any, sqlalchemy: Any) -> Database | None:
    from ._alchemy import Alchemy, AsyncAlchemy

    orm, aio = sys.modules.get("sqlalchemy.orm"), sys.modules.get("sqlalchemy.ext.asyncio")
    if isinstance(tx, sqlalchemy.Connection):
        return Alchemy(tx, None, sqlalchemy)
    if orm is not None and isinstance(tx, orm.scoped_session):
        tx = tx()
    if orm is not None and isinstance(tx, orm.Session):
        return Alchemy(None, tx, sqlalchemy)
    if aio is not None and isinstance(tx, (aio.AsyncConnection, aio.AsyncSession)):
        return AsyncAlchemy(tx, sqlalchemy)
    return None
