# LlamaIndex: a tool whose answer is lost runs once.
from collections.abc import Callable

import semel
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.tools import FunctionTool


def agent_of(model: FunctionCallingLLM, act: Callable[[str], object]) -> FunctionAgent:
    @semel.once
    async def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    return FunctionAgent(tools=[FunctionTool.from_defaults(async_fn=charge)], llm=model)
