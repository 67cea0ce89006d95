# OpenAI Agents: a tool whose answer is lost runs once; the next call needs approval.
from collections.abc import Callable

from agents import Agent, Model, function_tool

from semel.adapters.openai_agents import guard


def agent_of(model: Model, act: Callable[[str], object]) -> Agent:
    @function_tool
    async def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return Agent("billing", model=model, tools=[guard(charge, run="order-42")])
