# Microsoft Agent Framework: a tool whose answer is lost runs once; its call waits for a person's approval.
from collections.abc import Callable

from agent_framework import Agent, SupportsChatGetResponse, tool

from semel.adapters.agent_framework import Guard


def agent_of(client: SupportsChatGetResponse, act: Callable[[str], object]) -> Agent:
    @tool
    def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return Agent(client, tools=[charge], middleware=[Guard()])
