# The ledger is the file that SEMEL_LEDGER names, or the default one.
import semel  # protects
from world import act


@semel.once(key="{invoice}")  # protects
def charge(invoice: str) -> dict:
    return act(invoice)
