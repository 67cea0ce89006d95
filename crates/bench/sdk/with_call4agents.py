import call4agents as c4a  # protects
from world import act

c4a.init()  # protects


@c4a.effect  # protects
def pay(invoice: str) -> dict:
    return act(invoice)


def charge(invoice: str) -> dict:
    with c4a.run("order"):  # protects
        return pay(invoice)
