# smolagents: a tool whose answer is lost runs once, whatever the agent writes next.
from collections.abc import Callable

import semel
from smolagents import Model, ToolCallingAgent, tool


def agent_of(model: Model, act: Callable[[str], object]) -> ToolCallingAgent:
    @tool
    @semel.once
    def charge(customer: str) -> dict:
        """Charges a customer.

        Args:
            customer: Who is charged.
        """
        return act(customer)

    return ToolCallingAgent([charge], model)
