from exactly_once import Store, once  # protects
from world import act

store = Store.sqlite("effects.db")  # protects


@once(store, key=lambda invoice: f"charge:{invoice}")  # protects
def charge(invoice: str) -> dict:
    return act(invoice)
