# DBOS: a step that acted and crashed is not run again; the recovered workflow reads the doubt.
from collections.abc import Callable

import semel
from dbos import DBOS


def may_be_retried(error: BaseException) -> bool:
    return not isinstance(error, semel.Held)


def workflow_of(act: Callable[[str], object]) -> Callable[[str], object]:
    @DBOS.step(retries_allowed=True, interval_seconds=0.1, should_retry=may_be_retried)
    @semel.once(key="{customer}")
    def charge(customer: str) -> object:
        return act(customer)

    @DBOS.workflow()
    def order(customer: str) -> object:
        return charge(customer)

    return order
