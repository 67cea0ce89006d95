# CrewAI: a tool whose answer is lost runs once, however often CrewAI calls it.
from collections.abc import Callable

import semel
from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool


def crew_of(model: BaseLLM, act: Callable[[str], object]) -> Crew:
    @tool
    @semel.once
    def charge(customer: str) -> object:
        """Charges a customer."""
        return act(customer)

    agent = Agent(role="billing", goal="Charge customers.", backstory="A clerk.", llm=model, tools=[charge])
    task = Task(description="Charge Ann.", expected_output="A word.", agent=agent)
    return Crew(agents=[agent], tasks=[task])
