# Pydantic AI: a tool whose answer is lost runs once; its call is deferred until a person decides.
from collections.abc import Callable

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models import Model

from semel.adapters.pydantic_ai import Guard


def agent_of(model: Model, act: Callable[[str], object]) -> Agent:
    agent = Agent(model, output_type=[str, DeferredToolRequests], capabilities=[Guard()])

    @agent.tool_plain
    def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return agent
