"""smolagents."""

from __future__ import annotations

import os
from typing import Any

import pytest

pytest.importorskip("smolagents")

from conftest import World
from failures import Act, acting, crash, effect_id_in, example, remove_guard
from smolagents import CodeAgent, Model
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction

import semel

pytestmark = [
    pytest.mark.usefixtures("semel_ledger"),
    # It says so of each decorator. The code of the tool stays in this process.
    pytest.mark.filterwarnings("ignore:Function 'charge' has decorators other than @tool"),
]


class Scripted(Model):
    """A model that says these things, one after the other: tool calls for a number, a last answer for a text."""

    def __init__(self, *steps: int | str) -> None:
        super().__init__()
        self.steps, self.calls, self.heard = list(steps), 0, ""

    def generate(self, messages: Any, *_: Any, **__: Any) -> ChatMessage:
        self.heard += "\n".join(part["text"] for part in messages[-1].content)
        step = self.steps.pop(0)
        if isinstance(step, str):
            return self.says(("final_answer", {"answer": step}))
        return self.says(*[("charge", {"customer": "ann"})] * step)

    def says(self, *calls: tuple[str, dict[str, str]]) -> ChatMessage:
        made = []
        for name, arguments in calls:
            self.calls += 1
            function = ChatMessageToolCallFunction(name=name, arguments=arguments)
            made.append(ChatMessageToolCall(id=f"call_{self.calls}", type="function", function=function))
        return ChatMessage(role="assistant", content="", tool_calls=made)


class Writing(Scripted):
    """One that writes code."""

    def says(self, *calls: tuple[str, dict[str, str]]) -> ChatMessage:
        code = "\n".join(f"{name}(**{arguments})" for name, arguments in calls)
        return ChatMessage(role="assistant", content=f"<code>\n{code}\n</code>")


def run(act: Act, *steps: int | str, writes: bool = False) -> str:
    """What the model has read."""
    model = (Writing if writes else Scripted)(*steps)
    agent = example("smolagents").agent_of(model, act)
    if writes:
        agent = CodeAgent([agent.tools["charge"]], model)
    with semel.run("order-42"):
        assert agent.run("Charge Ann.") == "Done."
    return model.heard


def crashing() -> None:
    run(acting(os.environ["WORLD"], "die"), 1)


@pytest.mark.parametrize("writes", [False, True])
def test_the_answer_is_lost_the_model_calls_again_a_person_decides_and_the_record_answers(
    writes: bool, world: World
) -> None:
    act = acting(world.path, "lose")
    told = run(act, 1, 1, "Done.", writes=writes)
    assert told.count("Safe to retry: no") == 2
    semel.resolve(effect_id_in(told), "applied", "seen in the dashboard", {"id": "ch_1"})
    assert "retry" not in run(act, 1, "Done.", writes=writes)
    assert world.acts() == ["ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    assert run(acting(world.path, "answer"), 3, "Done.").count("ch_1") == 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_smolagents", env)
    assert "may have been carried out" in run(acting(world.path, "answer"), 1, "Done.")
    assert world.acts() == ["ann"]


def test_the_tool_keeps_its_schema() -> None:
    agent = example("smolagents").agent_of(Scripted(), acting("nowhere", "answer"))
    charge = agent.tools["charge"]
    assert charge.description == "Charges a customer."
    assert charge.inputs == {"customer": {"type": "string", "description": "Who is charged."}}


@pytest.mark.parametrize(
    ("writes", "ending", "steps", "runs"),
    [(False, "lose", [1, 1], 2), (True, "lose", [1, 1], 2), (False, "answer", [3], 3)],
)
def test_without_semel_it_runs_more_than_once(
    writes: bool, ending: str, steps: list[int], runs: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    told = run(acting(world.path, ending), *steps, "Done.", writes=writes)
    assert len(world.acts()) == runs
    if ending == "lose":
        assert "retry" in told  # the framework's word


def test_without_semel_it_runs_again_after_a_crash(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_smolagents", env, guarded=False)
    remove_guard(monkeypatch.setattr)
    run(acting(world.path, "answer"), 1, "Done.")
    assert world.acts() == ["ann", "ann"]
