"""Pydantic AI."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from conftest import World
from failures import Act, acting, crash, example
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext
from pydantic_ai.capabilities import AbstractCapability, Hooks
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturn, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

import semel.adapters.pydantic_ai
from semel.adapters.pydantic_ai import Guard
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
SEEN = {"verdict": "applied", "reason": "seen in the dashboard", "reply": {"id": "ch_1"}}
NEVER = {"verdict": "not_applied", "reason": "not in the dashboard"}


def scripted(*steps: int | str) -> FunctionModel:
    """A model that says these things, one after the other: tool calls for a number, text for a text."""
    left, calls = list(steps), iter(range(1, 100))

    def say(*_: Any) -> ModelResponse:
        step = left.pop(0)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(
            parts=[ToolCallPart("charge", {"customer": "ann"}, tool_call_id=f"call_{next(calls)}") for _ in range(step)]
        )

    return FunctionModel(say)


def agent_of(act: Act, *steps: int | str) -> Agent[None, Any]:
    return example("pydantic_ai").agent_of(scripted(*steps), act)


def run(agent: Agent[None, Any], **more: Any) -> Any:
    prompt = None if more else "Charge Ann."
    return asyncio.run(agent.run(prompt, conversation_id="order-42", **more))


def question(result: Any) -> dict[str, Any]:
    assert isinstance(result.output, DeferredToolRequests)
    asked, *same = result.output.metadata.values()
    assert all(one == asked for one in same)
    return asked


def decide(agent: Agent[None, Any], result: Any, answer: dict[str, Any] | None) -> Any:
    ids = [call.tool_call_id for call in result.output.approvals]
    metadata = {} if answer is None else {one: answer for one in ids}
    results = DeferredToolResults(approvals={one: True for one in ids}, metadata=metadata)
    return run(agent, message_history=result.all_messages(), deferred_tool_results=results)


def answers(result: Any) -> list[Any]:
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part.content for part in parts if isinstance(part, ToolReturnPart)]


def remove_guard(replace: Callable[[Any, str, Any], None]) -> None:
    replace(semel.adapters.pydantic_ai, "Guard", AbstractCapability)


def crashing() -> None:
    if "UNGUARDED" in os.environ:
        remove_guard(setattr)
    run(agent_of(acting(os.environ["WORLD"], "die"), 1))


def test_the_answer_is_lost_a_person_decides_and_the_record_answers(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, 1, "Done.")
    first = run(agent)
    asked = question(first)
    assert asked["tool"] == "charge" and asked["args"] == {"customer": "ann"}
    assert "may have been carried out" in asked["message"] and "try again" not in asked["message"]

    done = decide(agent, first, {**asked, **SEEN})
    assert done.output == "Done."
    assert answers(done) == [{"id": "ch_1"}] * 2  # the model called once more
    assert world.acts() == ["ann"]


def test_an_approval_alone_decides_nothing(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, "Done.")
    done = decide(agent, run(agent), None)
    [told] = answers(done)
    assert "may have been carried out" in told and "Safe to retry: no" in told
    assert world.acts() == ["ann"]


def test_a_ruling_is_about_one_attempt(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, "Done.")
    first = run(agent)
    second = decide(agent, first, {**question(first), **NEVER})
    assert (question(first)["attempt"], question(second)["attempt"]) == (1, 2)
    # The program comes back after a crash and brings the first ruling again.
    third = decide(agent, first, {**question(first), **NEVER})
    assert question(third) == question(second)
    assert world.acts() == ["ann", "ann"]
    done = decide(agent, third, {**question(third), **SEEN})
    assert answers(done) == [{"id": "ch_1"}]
    assert world.acts() == ["ann", "ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    done = run(agent_of(acting(world.path, "answer"), 3, "Done."))
    assert answers(done) == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


def test_equal_calls_whose_answer_is_lost_are_decided_once(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 3, "Done.")
    paused = run(agent)
    assert answers(decide(agent, paused, {**question(paused), **SEEN})) == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_pydantic_ai", env)
    agent = agent_of(acting(world.path, "answer"), 1, "Done.")
    paused = run(agent)
    done = decide(agent, paused, {**question(paused), **SEEN})
    assert answers(done) == [{"id": "ch_1"}]
    assert world.acts() == ["ann"]


def test_the_authors_own_words_and_pauses_are_no_doubt(world: World, semel_ledger: Ledger) -> None:
    agent = Agent(scripted(1, 1, "Done."), output_type=[str, DeferredToolRequests], capabilities=[Guard()])
    closed = [True]

    @agent.tool(retries=2)
    def charge(ctx: RunContext[None], customer: str) -> str:
        if closed:
            closed.clear()
            raise ModelRetry("the till is closed")
        if not ctx.tool_call_approved:
            raise ApprovalRequired
        world.act(customer)
        return "done"

    paused = run(agent)
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    assert world.acts() == []
    assert answers(decide(agent, paused, None))[-1] == "done"
    assert world.acts() == ["ann"]


def test_a_hook_that_rejects_a_result_does_not_run_it_again(world: World) -> None:
    hooks = Hooks[None]()

    @hooks.on.after_tool_execute
    async def reject(ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        if ctx.retry == 0:
            raise ModelRetry("say that again")
        return result

    agent = Agent(scripted(1, 1, "Done."), output_type=[str, DeferredToolRequests], capabilities=[hooks, Guard()])

    @agent.tool_plain(retries=2)
    def charge(customer: str) -> ToolReturn:
        world.act(customer)
        return ToolReturn(return_value="done", content="and a picture", metadata={"n": 1})

    assert answers(run(agent))[-1] == "done"
    assert world.acts() == ["ann"]


def test_without_semel_a_run_that_is_tried_again_repeats_a_lost_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    for _ in range(2):
        with pytest.raises(TimeoutError):
            run(agent_of(acting(world.path, "lose"), 1))
    assert world.acts() == ["ann"] * 2


def test_without_semel_equal_calls_all_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_guard(monkeypatch.setattr)
    run(agent_of(acting(world.path, "answer"), 3, "Done."))
    assert world.acts() == ["ann"] * 3


def test_without_semel_a_crashed_call_runs_again(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_pydantic_ai", {**env, "UNGUARDED": "yes"})
    remove_guard(monkeypatch.setattr)
    run(agent_of(acting(world.path, "answer"), 1, "Done."))
    assert world.acts() == ["ann"] * 2
