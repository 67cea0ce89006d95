# LangChain: a tool whose answer is lost runs once; the graph is interrupted until a person decides.
from collections.abc import Callable

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from semel.adapters.langchain import Guard


def agent_of(model: BaseChatModel, act: Callable[[str], object]):
    @tool
    def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return create_agent(model, [charge], middleware=[Guard()], checkpointer=InMemorySaver())
