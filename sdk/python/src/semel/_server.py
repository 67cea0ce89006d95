"""A `semel serve` on this machine or another: HTTP/1.1 with connections kept alive."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ._settings import unusable
from ._transport import Answer, Lost

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_ANSWER_WAIT = 90  # seconds; a begin waits 60 s at most
_CONNECT_WAIT = 10
_BEGINS_MAX = 64  # tasks that may wait for a twin at once
_OTHERS_MAX = 8


class Server:
    in_process = False

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = parts.path.rstrip("/") + "/api/v1"
        self._headers = {"Content-Type": "application/json", **_authorization()}
        self._tls = _tls() if parts.scheme == "https" else None
        self._idle: list[http.client.HTTPConnection] = []
        self._lanes: dict[str, ThreadPoolExecutor] = {}

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        data = None if body is None else json.dumps(body, allow_nan=False, separators=(",", ":")).encode()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            if connection.sock is None:
                connection.connect()
                if connection.sock is not None:
                    connection.sock.settimeout(_ANSWER_WAIT)
            connection.request(method, self._path + path, data, self._headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self._drop_idle()  # they are as old as this one
            raise Lost(f"{self._host}: {error or type(error).__name__}") from error
        except BaseException:
            connection.close()  # its answer would be the next caller's
            raise
        if not response.will_close:
            self._idle.append(connection)
        return response.status, _parse(response.status, text)

    async def aask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Answer:
        import asyncio

        # Shielded: a cancelled task must not lose the settlement that it has sent.
        work = asyncio.get_running_loop().run_in_executor(self._lane(path), self.ask, method, path, body)
        return await asyncio.shield(work)

    def close(self, dies: bool = False) -> None:
        for lane in self._lanes.values():
            lane.shutdown(wait=False)
        self._drop_idle()

    def abandon(self) -> None:
        self._lanes = {}  # their threads are the parent's
        self._drop_idle()

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=_CONNECT_WAIT, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=_CONNECT_WAIT)

    def _drop_idle(self) -> None:
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _lane(self, path: str) -> ThreadPoolExecutor:
        # A begin may wait for a twin, and the twin must still find a thread to settle.
        name = "begin" if path == "/begin" else "other"
        if name not in self._lanes:
            from concurrent.futures import ThreadPoolExecutor

            self._lanes[name] = ThreadPoolExecutor(
                _BEGINS_MAX if name == "begin" else _OTHERS_MAX, thread_name_prefix=f"semel-{name}"
            )
        return self._lanes[name]


def _parse(status: int, text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer
    if status >= 500:
        raise Lost(f"a proxy answered {status}")
    raise unusable(f"The server answered {status}, and not as semel does.", "Check the address of the server.")


def _authorization() -> dict[str, str]:
    token, path = os.environ.get("SEMEL_TOKEN"), os.environ.get("SEMEL_TOKEN_FILE")
    if not token and path:
        try:
            with open(path, encoding="ascii") as file:
                token = file.read().strip()
        except (OSError, ValueError) as error:
            raise unusable(f"SEMEL_TOKEN_FILE cannot be read: {error}.", "Make it readable for this user.") from error
    if not token:
        return {}
    if not token.isascii() or not token.isprintable():
        raise unusable("SEMEL_TOKEN is no token.", "Set it to what `semel token create` printed.")
    return {"Authorization": f"Bearer {token}"}


def _tls() -> ssl.SSLContext:
    path = os.environ.get("SEMEL_SERVER_CA")
    try:
        return ssl.create_default_context(cafile=path or None)
    except (OSError, ssl.SSLError) as error:
        raise unusable(f"SEMEL_SERVER_CA cannot be read: {error}.", "Name a PEM file with its roots.") from error
