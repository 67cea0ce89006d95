# Google ADK: a tool whose answer is lost runs once; its call waits for a person's confirmation.
from collections.abc import Callable

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm

from semel.adapters.google_adk import guard


def agent_of(model: BaseLlm, act: Callable[[str], object]) -> LlmAgent:
    def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return LlmAgent(name="billing", model=model, tools=[guard(charge)])
