"""LangChain and LangGraph."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain")

from conftest import World
from failures import Act, acting, crash, example
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import InjectedToolCallId, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, interrupt

import semel.adapters.langchain
from semel.adapters.langchain import awrap_tool_call, wrap_tool_call
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
THREAD: Any = {"configurable": {"thread_id": "thread-1"}}
ASKED: Any = {"messages": [{"role": "user", "content": "Charge Ann."}]}
SEEN = {"verdict": "applied", "reason": "seen in the dashboard", "reply": {"id": "ch_1"}}
NEVER = {"verdict": "not_applied", "reason": "not in the dashboard"}
BOTH = pytest.mark.parametrize("invoke", ["sync", "async"])


class Scripted(BaseChatModel):
    """A model that says these things, one after the other: tool calls for a number, text for a text."""

    steps: list[int | str]
    calls: int = 0

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        step = self.steps.pop(0)
        message = says(step, self.calls) if isinstance(step, int) else AIMessage(step)
        self.calls += len(message.tool_calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def says(count: int, before: int = 0, args: dict[str, Any] | None = None) -> AIMessage:
    calls = [
        {"name": "charge", "args": args or {"customer": "ann"}, "id": f"call_{before + n + 1}", "type": "tool_call"}
        for n in range(count)
    ]
    return AIMessage("", tool_calls=calls)


def agent_of(act: Act, *steps: int | str) -> Any:
    return example("langchain").agent_of(Scripted(steps=list(steps)), act)


def run(invoke: str, agent: Any, given: Any) -> dict[str, Any]:
    if invoke == "sync":
        return agent.invoke(given, THREAD)
    return asyncio.run(agent.ainvoke(given, THREAD))


def question(state: dict[str, Any]) -> dict[str, Any]:
    [asked] = state["__interrupt__"]
    return asked.value


def answers(state: dict[str, Any]) -> list[ToolMessage]:
    return [message for message in state["messages"] if isinstance(message, ToolMessage)]


def remove_guard(replace: Callable[[Any, str, Any], None]) -> None:
    replace(semel.adapters.langchain, "Guard", AgentMiddleware)


def crashing() -> None:
    if "UNGUARDED" in os.environ:
        remove_guard(setattr)
    agent_of(acting(os.environ["WORLD"], "die"), 1).invoke(ASKED, THREAD)


@BOTH
def test_the_answer_is_lost_a_person_decides_and_the_record_answers(invoke: str, world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, 1, "Done.")
    asked = question(run(invoke, agent, ASKED))
    assert asked["tool"] == "charge" and asked["args"] == {"customer": "ann"}
    assert "may have been carried out" in asked["message"] and "try again" not in asked["message"]

    done = run(invoke, agent, Command(resume={**asked, **SEEN}))
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}'] * 2  # the model called once more
    assert [a.tool_call_id for a in answers(done)] == ["call_1", "call_2"]
    assert done["messages"][-1].content == "Done."
    assert world.acts() == ["ann"]


@BOTH
def test_a_ruling_is_about_one_attempt(invoke: str, world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, "Done.")
    first = question(run(invoke, agent, ASKED))
    second = question(run(invoke, agent, Command(resume={**first, **NEVER})))
    assert (first["attempt"], second["attempt"]) == (1, 2)
    # The graph gives the first ruling again when it comes to the call again.
    assert question(run(invoke, agent, None)) == second
    assert question(run(invoke, agent, Command(resume=True))) == second
    assert world.acts() == ["ann", "ann"]
    done = run(invoke, agent, Command(resume={**second, **SEEN}))
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}']
    assert world.acts() == ["ann", "ann"]


@BOTH
def test_equal_calls_in_one_step_run_once_and_each_gets_its_own_message(invoke: str, world: World) -> None:
    done = run(invoke, agent_of(acting(world.path, "answer"), 3, "Done."), ASKED)
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}'] * 3
    assert sorted(a.tool_call_id for a in answers(done)) == ["call_1", "call_2", "call_3"]
    assert world.acts() == ["ann"]


@BOTH
def test_equal_calls_whose_answer_is_lost_are_decided_once(invoke: str, world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 3, "Done.")
    asked = run(invoke, agent, ASKED)["__interrupt__"]
    done = run(invoke, agent, Command(resume={one.id: {**one.value, **SEEN} for one in asked}))
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}'] * 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_langchain", env)
    agent = agent_of(acting(world.path, "answer"), 1, "Done.")
    asked = question(agent.invoke(ASKED, THREAD))
    done = agent.invoke(Command(resume={**asked, **SEEN}), THREAD)
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def graph_of(charge: Any, **options: Any) -> Any:
    """A plain graph, which goes through one tool node."""
    node = ToolNode([charge], wrap_tool_call=wrap_tool_call, awrap_tool_call=awrap_tool_call, **options)
    graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools")
    return graph.compile(checkpointer=InMemorySaver())


@BOTH
def test_a_plain_tool_node_in_which_errors_become_text(invoke: str, world: World) -> None:
    charge = StructuredTool.from_function(acting(world.path, "lose"), description="-")
    graph = graph_of(charge, handle_tool_errors=True)
    asked = question(run(invoke, graph, {"messages": [says(1)]}))
    done = run(invoke, graph, Command(resume={**asked, **SEEN}))
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


@BOTH
def test_wrong_arguments_and_a_wrong_name_are_no_doubt(invoke: str, world: World, semel_ledger: Ledger) -> None:
    @tool
    def charge(customer: str) -> str:
        "-"
        world.act(customer)
        return "done"

    for options in {}, {"handle_tool_errors": True}:
        done = run(invoke, graph_of(charge, **options), {"messages": [says(1, args={"client": "ann"})]})
        assert [a.status for a in answers(done)] == ["error"]
    other = AIMessage("", tool_calls=[{"name": "refund", "args": {}, "id": "call_9", "type": "tool_call"}])
    done = run(invoke, graph_of(charge), {"messages": [other]})
    assert "not a valid tool" in answers(done)[0].content
    assert {effect["state"] for effect in semel_ledger.effects()} == {"not_applied"}
    assert world.acts() == []


@BOTH
def test_a_pause_of_the_tool_itself_is_no_doubt(invoke: str, world: World) -> None:
    @tool
    def charge(customer: str) -> str:
        "-"
        assert interrupt("May I?") == "yes"
        world.act(customer)
        raise TimeoutError

    graph = graph_of(charge)
    [asked] = run(invoke, graph, {"messages": [says(1)]})["__interrupt__"]
    assert asked.value == "May I?"
    doubt = question(run(invoke, graph, Command(resume="yes")))
    assert "may have been carried out" in doubt["message"]
    done = run(invoke, graph, Command(resume={**doubt, **SEEN}))
    assert [a.content for a in answers(done)] == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


@BOTH
def test_a_command_is_given_again_for_the_new_call(invoke: str, world: World) -> None:
    def charge(customer: str, call_id: Annotated[str, InjectedToolCallId]) -> Command:
        "-"
        world.act(customer)
        return Command(update={"messages": [ToolMessage("done", tool_call_id=call_id)]})

    graph = graph_of(tool(charge))
    for _ in range(2):
        done = run(invoke, graph, {"messages": [says(1, before=len(world.acts()))]})
    assert [(a.content, a.tool_call_id) for a in answers(done)] == [("done", "call_1"), ("done", "call_2")]
    assert world.acts() == ["ann"]


def test_without_semel_a_graph_that_goes_on_repeats_a_lost_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    agent = agent_of(acting(world.path, "lose"), 1)
    for given in ASKED, None:
        with pytest.raises(TimeoutError):
            agent.invoke(given, THREAD)
    assert world.acts() == ["ann"] * 2


def test_without_semel_equal_calls_all_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_guard(monkeypatch.setattr)
    agent_of(acting(world.path, "answer"), 3, "Done.").invoke(ASKED, THREAD)
    assert world.acts() == ["ann"] * 3


def test_without_semel_a_crashed_call_runs_again(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_langchain", {**env, "UNGUARDED": "yes"})
    remove_guard(monkeypatch.setattr)
    agent_of(acting(world.path, "answer"), 1, "Done.").invoke(ASKED, THREAD)
    assert world.acts() == ["ann"] * 2
