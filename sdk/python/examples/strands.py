# Strands: a tool whose answer is lost runs once; the agent is interrupted until a person decides.
from collections.abc import Callable

from strands import Agent, tool
from strands.models import Model

from semel.adapters.strands import Guard


def agent_of(model: Model, act: Callable[[str], object]) -> Agent:
    @tool
    def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return Agent(model, tools=[charge], plugins=[Guard(run="order-42")])
