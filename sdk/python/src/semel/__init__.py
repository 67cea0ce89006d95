"""semel makes each intended side effect happen at most once.

@semel.once(key="invoice-{invoice}")
def charge(invoice: str, amount: int) -> Charge: ...
"""

from __future__ import annotations

import os

from ._adapt import acall, aresolve, astate, call, resolve, state
from ._block import effect
from ._errors import (
    Cancelled,
    Drift,
    Held,
    InDoubt,
    InFlight,
    InvalidCall,
    LedgerUnavailable,
    Lookalike,
    Refused,
    ReplyLost,
    SemelError,
)
from ._json import Codec
from ._once import Once, once
from ._run import Current, current, run


def configure(ledger: str | os.PathLike[str] | None = None, policy: str | os.PathLike[str] | None = None) -> None:
    """Says where the ledger lies: a path, postgres://, redis://, etcd://, or the https:// of a `semel serve`.

    Call it before the first protected call. Without it: SEMEL_LEDGER, SEMEL_SERVER, semel.toml, the default file.
    """
    from ._settings import settings
    from ._transport import use

    use(settings(ledger, policy))


__all__ = [
    "Cancelled",
    "Codec",
    "Current",
    "Drift",
    "Held",
    "InDoubt",
    "InFlight",
    "InvalidCall",
    "LedgerUnavailable",
    "Lookalike",
    "Once",
    "Refused",
    "ReplyLost",
    "SemelError",
    "acall",
    "aresolve",
    "astate",
    "call",
    "configure",
    "current",
    "effect",
    "once",
    "resolve",
    "run",
    "state",
]
__version__ = "0.1.0"
