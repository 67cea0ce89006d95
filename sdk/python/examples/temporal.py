# Temporal: an activity that acted and lost its answer is not run again; the workflow reads the doubt.
from collections.abc import Callable
from datetime import timedelta

import semel
from temporalio import activity, workflow
from temporalio.common import RetryPolicy


def activity_of(act: Callable[[str], object]) -> Callable[[str], object]:
    @activity.defn
    @semel.once(key="{customer}")
    def charge(customer: str) -> object:
        return act(customer)

    return charge


@workflow.defn
class Order:
    @workflow.run
    async def run(self, customer: str) -> object:
        return await workflow.execute_activity(
            "charge",
            customer,
            start_to_close_timeout=timedelta(seconds=10),
            retry_policy=RetryPolicy(non_retryable_error_types=["InDoubt"]),
        )
