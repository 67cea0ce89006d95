"""OpenAI Agents."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, Model, ModelResponse, RunConfig, Runner, RunResult, Usage, function_tool
from conftest import World
from failures import Act, acting, crash, effect_id_in, example
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

import semel.adapters.openai_agents
from semel.adapters.openai_agents import guard
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
ANN = '{"customer":"ann"}'


class Scripted(Model):
    """A model that says these things, one after the other: tool calls for a number, text for a text."""

    def __init__(self, *steps: int | str, arguments: str = ANN) -> None:
        self.steps, self.arguments, self.calls = list(steps), arguments, 0

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        step = self.steps.pop(0)
        output: list[Any]
        if isinstance(step, str):
            text = ResponseOutputText(type="output_text", text=step, annotations=[])
            output = [
                ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])
            ]
        else:
            output = [self.call() for _ in range(step)]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def call(self) -> ResponseFunctionToolCall:
        self.calls += 1
        return ResponseFunctionToolCall(
            type="function_call", name="charge", call_id=f"call_{self.calls}", arguments=self.arguments
        )

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def agent_of(act: Act, *steps: int | str) -> Agent:
    return example("openai_agents").agent_of(Scripted(*steps), act)


def run(agent: Agent, given: Any = "Charge Ann.") -> RunResult:
    return asyncio.run(Runner.run(agent, given, run_config=RunConfig(tracing_disabled=True)))


def outputs(result: RunResult) -> list[str]:
    items: list[Any] = result.to_input_list()
    return [str(item["output"]) for item in items if item.get("type") == "function_call_output"]


def remove_guard(replace: Callable[[Any, str, Any], None]) -> None:
    replace(semel.adapters.openai_agents, "guard", lambda tool, **_: tool)


def crashing() -> None:
    if "UNGUARDED" in os.environ:
        remove_guard(setattr)
    run(agent_of(acting(os.environ["WORLD"], "die"), 1))


def test_the_answer_is_lost_the_model_calls_again_a_person_decides_and_the_record_answers(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, 1, "Done.")
    first = run(agent)
    [told] = outputs(first)
    assert "may have been carried out" in told and "Safe to retry: no" in told
    assert "try again" not in told
    [waiting] = first.interruptions

    semel.resolve(effect_id_in(told), "applied", "seen in the dashboard", {"id": "ch_1"})
    state = first.to_state()
    state.approve(waiting)
    answered = run(agent, state)
    assert answered.final_output == "Done."
    assert "ch_1" in outputs(answered)[-1]
    assert world.acts() == ["ann"]


def test_an_approval_alone_decides_nothing(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, 1, "Done.")
    first = run(agent)
    state = first.to_state()
    state.approve(first.interruptions[0])
    assert "may have been carried out" in outputs(run(agent, state))[-1]
    assert world.acts() == ["ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    done = run(agent_of(acting(world.path, "answer"), 3, "Done."))
    assert done.final_output == "Done."
    assert ["ch_1" in output for output in outputs(done)] == [True] * 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_openai_agents", env)
    agent = agent_of(acting(world.path, "answer"), 1, "Done.")
    paused = run(agent)
    [waiting] = paused.interruptions
    state = paused.to_state()
    semel.resolve(effect_id_in(json.dumps(Ledger(world.path.parent).effects())), "applied", "seen", {"id": "ch_1"})
    state.approve(waiting)
    assert "ch_1" in outputs(run(agent, state))[-1]
    assert world.acts() == ["ann"]


def test_wrong_arguments_are_no_doubt(world: World, semel_ledger: Ledger) -> None:
    tool = guard(function_tool(acting(world.path, "answer"), name_override="charge"), run="order-42")
    for arguments in '{"client":"ann"}', "{", "[1]":
        done = run(Agent("billing", model=Scripted(1, "Done.", arguments=arguments), tools=[tool]))
        if done.interruptions:  # arguments that cannot be read need approval, as ever
            state = done.to_state()
            state.approve(done.interruptions[0])
            done = run(done.last_agent, state)
        assert "Invalid JSON input" in outputs(done)[-1]
    assert {effect["state"] for effect in semel_ledger.effects()} == {"not_applied"}
    assert world.acts() == []


def test_the_own_approval_and_the_own_words_of_a_tool_stay(world: World) -> None:
    def tell(_: Any, error: Exception) -> str:
        return f"own words: {error}"

    charge = function_tool(
        acting(world.path, "lose"), name_override="charge", needs_approval=True, failure_error_function=tell
    )
    agent = Agent("billing", model=Scripted(1, "Done."), tools=[guard(charge, run=lambda context: "order-42")])
    paused = run(agent)
    assert world.acts() == []
    state = paused.to_state()
    state.approve(paused.interruptions[0])
    assert outputs(run(agent, state))[0].startswith("own words: fn:charge")
    assert world.acts() == ["ann"]


def test_a_timeout_is_a_doubt(world: World) -> None:
    @function_tool(timeout=2)  # long enough for the claim, which comes before the tool
    async def charge(customer: str) -> str:
        world.act(customer)
        await asyncio.Event().wait()
        return "done"

    agent = Agent("billing", model=Scripted(1, 1, "Done."), tools=[guard(charge, run="order-42")])
    paused = run(agent)
    assert len(paused.interruptions) == 1
    assert world.acts() == ["ann"]


def test_an_agent_as_a_tool_is_refused() -> None:
    inner = Agent("inner", model=Scripted("Done."))
    with pytest.raises(semel.InvalidCall):
        guard(inner.as_tool("ask", "Asks."))


def test_without_semel_the_model_repeats_a_lost_answer(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_guard(monkeypatch.setattr)
    done = run(agent_of(acting(world.path, "lose"), 1, 1, "Done."))
    assert ["try again" in output for output in outputs(done)] == [True] * 2  # the framework's words
    assert world.acts() == ["ann"] * 2


def test_without_semel_equal_calls_all_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_guard(monkeypatch.setattr)
    run(agent_of(acting(world.path, "answer"), 3, "Done."))
    assert world.acts() == ["ann"] * 3


def test_without_semel_a_crashed_call_runs_again(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_openai_agents", {**env, "UNGUARDED": "yes"})
    remove_guard(monkeypatch.setattr)
    run(agent_of(acting(world.path, "answer"), 1, "Done."))
    assert world.acts() == ["ann"] * 2
