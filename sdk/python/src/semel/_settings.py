"""Where the ledger lies. Read at the first call."""

from __future__ import annotations

import os
from typing import NamedTuple

from ._errors import LedgerUnavailable, SemelError

_ENGINES = ("postgres", "postgresql", "redis", "rediss", "redis+cluster", "rediss+cluster", "redis+unix", "etcd", "etcds")


class Settings(NamedTuple):
    """The arguments of `configure`; the environment fills the gaps."""

    ledger: str | None = None
    policy: str | None = None
    in_process: bool = os.environ.get("SEMEL_SDK") != "sidecar"  # where the module is there

    def server(self) -> str | None:
        """The address of a `semel serve`, if one has the ledger."""
        if self.ledger is not None:
            return self.ledger if _scheme(self.ledger) in ("http", "https") else None
        server, ledger = os.environ.get("SEMEL_SERVER"), os.environ.get("SEMEL_LEDGER")
        if server and ledger:
            raise unusable("SEMEL_SERVER and SEMEL_LEDGER are both set.", "Unset one of them.")
        if ledger and _scheme(ledger) in ("http", "https"):
            server = ledger
        if server:
            check_address(server)
        return server or None

    def environment(self) -> dict[str, str]:
        """The environment of a sidecar."""
        env = {name: value for name, value in os.environ.items() if name != "SEMEL_SERVER"}
        if self.ledger is not None:
            env["SEMEL_LEDGER"] = self.ledger
        if self.policy is not None:
            env["SEMEL_POLICY"] = self.policy
        return env


def settings(ledger: str | os.PathLike[str] | None, policy: str | os.PathLike[str] | None) -> Settings:
    """Refuses what could not work, before anything runs."""
    where = None
    if ledger is not None:
        where = os.fspath(ledger)
        if not where:
            raise unusable("The ledger's address is empty.", "Give a path or an address.")
        if _scheme(where) is None:
            where = os.path.abspath(os.path.expanduser(where))
        else:
            check_address(where)
            if policy is not None and _scheme(where) in ("http", "https"):
                raise unusable("A server has its own policy.", "Leave policy= out.")
    return Settings(where, None if policy is None else os.path.abspath(os.path.expanduser(os.fspath(policy))))


def check_address(address: str) -> None:
    scheme = _scheme(address)
    if scheme in _ENGINES or scheme == "https":
        return
    if scheme == "http":
        from urllib.parse import urlsplit

        if (urlsplit(address).hostname or "") in ("localhost", "127.0.0.1", "::1"):
            return
        raise unusable("http:// would show the token to the network.", "Use https://, or http:// on this machine.")
    raise unusable(
        f"semel does not know addresses with {scheme}://." if scheme else "The server's address has no scheme.",
        "Use a path, postgres://, redis://, etcd:// or https://.",
    )


def _scheme(address: str) -> str | None:
    scheme, found, _ = address.partition("://")
    return scheme.lower() if found else None


def unusable(happened: str, next_step: str, code: str = "ledger_unavailable") -> SemelError:
    return LedgerUnavailable(
        f"{happened} Nothing ran. Safe to retry: no. {next_step}",
        code=code,
        next_step=next_step,
        answer={"what_happened": happened},
    )
