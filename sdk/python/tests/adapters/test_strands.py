"""Strands."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")

from conftest import World
from failures import Act, acting, crash, example
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.agent import AgentResult
from strands.hooks import AfterToolCallEvent
from strands.models import Model
from strands.session import FileSessionManager

from semel.adapters.strands import Guard
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
SEEN = {"verdict": "applied", "reason": "seen in the dashboard", "reply": {"id": "ch_1"}}
NEVER = {"verdict": "not_applied", "reason": "not in the dashboard"}


class Scripted(Model):
    """A model that says these things, one after the other: tool calls for a number, text for a text."""

    def __init__(self, *steps: int | str, name: str = "charge", args: str = '{"customer": "ann"}') -> None:
        self.steps, self.name, self.args, self.calls = list(steps), name, args, 0

    async def stream(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        step = self.steps.pop(0)
        yield {"messageStart": {"role": "assistant"}}
        for _ in range(step if isinstance(step, int) else 1):
            start, delta = {}, {"text": step}
            if isinstance(step, int):
                self.calls += 1
                start = {"toolUse": {"name": self.name, "toolUseId": f"call_{self.calls}"}}
                delta = {"toolUse": {"input": self.args}}
            yield {"contentBlockStart": {"start": start}}
            yield {"contentBlockDelta": {"delta": delta}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if isinstance(step, int) else "end_turn"}}

    def update_config(self, **_: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    def structured_output(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def agent_of(act: Act, *steps: int | str) -> Agent:
    return example("strands").agent_of(Scripted(*steps), act)


def unguarded(act: Act, *steps: int | str) -> Agent:
    return Agent(Scripted(*steps), tools=[tool(act)])


def question(result: AgentResult) -> dict[str, Any]:
    asked, *same = [interrupt.reason for interrupt in result.interrupts or ()]
    assert all(one == asked for one in same)
    return asked


def decide(agent: Agent, result: AgentResult, answer: Any) -> AgentResult:
    return agent(
        [{"interruptResponse": {"interruptId": one.id, "response": answer}} for one in result.interrupts or ()]
    )


def results(agent: Agent) -> list[Any]:
    return [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]


def answers(agent: Agent) -> list[str]:
    return [result["content"][0]["text"] for result in results(agent)]


def crashing() -> None:
    of = unguarded if "UNGUARDED" in os.environ else agent_of
    of(acting(os.environ["WORLD"], "die"), 1)("Charge Ann.")


def test_the_answer_is_lost_a_person_decides_and_the_record_answers(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, 1, "Done.")
    first = agent("Charge Ann.")
    asked = question(first)
    assert asked["tool"] == "charge" and asked["args"] == {"customer": "ann"}
    assert "may have been carried out" in asked["message"] and "try again" not in asked["message"]

    done = decide(agent, first, {**asked, **SEEN})
    assert str(done).strip() == "Done."
    assert answers(agent) == ['{"id": "ch_1"}'] * 2  # the model called once more
    assert world.acts() == ["ann"]


def test_an_approval_alone_decides_nothing(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, "Done.")
    decide(agent, agent("Charge Ann."), True)
    [told] = answers(agent)
    assert "may have been carried out" in told and "Safe to retry: no" in told
    assert world.acts() == ["ann"]


def test_a_ruling_is_about_one_attempt(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 1, "Done.")
    first = agent("Charge Ann.")
    second = decide(agent, first, {**question(first), **NEVER})
    assert (question(first)["attempt"], question(second)["attempt"]) == (1, 2)
    assert world.acts() == ["ann", "ann"]
    decide(agent, second, {**question(second), **SEEN})
    assert answers(agent) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann", "ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    agent = agent_of(acting(world.path, "answer"), 3, "Done.")
    agent("Charge Ann.")
    assert answers(agent) == ['{"id": "ch_1"}'] * 3
    assert {result["toolUseId"] for result in results(agent)} == {"call_1", "call_2", "call_3"}
    assert world.acts() == ["ann"]


def test_equal_calls_whose_answer_is_lost_are_decided_once(world: World) -> None:
    agent = agent_of(acting(world.path, "lose"), 3, "Done.")
    paused = agent("Charge Ann.")
    decide(agent, paused, {**question(paused), **SEEN})
    assert answers(agent) == ['{"id": "ch_1"}'] * 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_strands", env)
    agent = agent_of(acting(world.path, "answer"), 1, "Done.")
    paused = agent("Charge Ann.")
    decide(agent, paused, {**question(paused), **SEEN})
    assert answers(agent) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def test_the_run_is_the_session_and_goes_on_in_another_agent(world: World, tmp_path: Path) -> None:
    def stored(session: str, ending: str, *steps: int | str) -> Agent:
        manager = FileSessionManager(session_id=session, storage_dir=str(tmp_path))
        charge = tool(acting(world.path, ending))
        return Agent(Scripted(*steps), tools=[charge], plugins=[Guard()], session_manager=manager)

    paused = stored("one", "lose", 1)("Charge Ann.")
    agent = stored("one", "answer", "Done.")
    decide(agent, paused, {**question(paused), **SEEN})
    assert answers(agent) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]
    stored("two", "answer", 1, "Done.")("Charge Ann.")
    assert world.acts() == ["ann", "ann"]


def test_a_hook_that_retries_does_not_run_the_tool_again(world: World) -> None:
    agent, tries = agent_of(acting(world.path, "answer"), 1, "Done."), [3]

    def retry(event: AfterToolCallEvent) -> None:
        tries[0] -= 1
        event.retry = tries[0] > 0

    agent.hooks.add_callback(AfterToolCallEvent, retry)
    agent("Charge Ann.")
    assert answers(agent) == ['{"id": "ch_1"}'] and tries == [0]
    assert world.acts() == ["ann"]


@pytest.mark.parametrize("wrong", [{"args": '{"client": "ann"}'}, {"name": "refund"}])
def test_wrong_arguments_and_a_wrong_name_are_no_doubt(
    world: World, semel_ledger: Ledger, wrong: dict[str, str]
) -> None:
    charge = tool(acting(world.path, "answer"))
    agent = Agent(Scripted(1, "Done.", **wrong), tools=[charge], plugins=[Guard()])
    agent("Charge Ann.")
    assert answers(agent)[0].startswith(("Error: Validation failed", "Unknown tool"))
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    assert world.acts() == []


def test_an_error_that_the_tool_made_a_result_is_a_doubt(world: World) -> None:
    @tool
    def charge(customer: str) -> dict[str, Any]:
        world.act(customer)
        return {"status": "error", "content": [{"text": "timed out"}]}

    agent = Agent(Scripted(1), tools=[charge], plugins=[Guard(run="order-42")])
    assert question(agent("Charge Ann."))["tool"] == "charge"
    assert world.acts() == ["ann"]


def test_a_cancelled_call_is_a_doubt(world: World) -> None:
    @tool
    async def charge(customer: str) -> None:
        world.act(customer)
        acted.set()
        await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.ensure_future(Agent(Scripted(1), **guarded).invoke_async("Charge Ann."))
        await acted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    acted = asyncio.Event()
    guarded: dict[str, Any] = {"tools": [charge], "plugins": [Guard(run="order-42")]}
    asyncio.run(cancel())
    assert "may have been carried out" in question(Agent(Scripted(1), **guarded)("Charge Ann."))["message"]
    assert world.acts() == ["ann"]


def test_a_pause_of_the_tool_itself_is_no_doubt(world: World, semel_ledger: Ledger) -> None:
    @tool(context=True)
    def charge(customer: str, tool_context: ToolContext) -> str:
        assert tool_context.interrupt("sure", reason="May I?") == "yes"
        world.act(customer)
        raise TimeoutError

    agent = Agent(Scripted(1, "Done."), tools=[charge], plugins=[Guard()])
    paused = agent("Charge Ann.")
    assert question(paused) == "May I?"
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    doubt = decide(agent, paused, "yes")
    assert "may have been carried out" in question(doubt)["message"]
    decide(agent, doubt, {**question(doubt), **SEEN})
    assert answers(agent) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def test_what_a_tool_streams_is_passed_on(world: World) -> None:
    @tool
    async def charge(customer: str) -> AsyncIterator[Any]:
        yield "under way"
        world.act(customer)
        yield {"id": "ch_1"}

    seen: list[Any] = []
    agent = Agent(
        Scripted(1, "Done."),
        tools=[charge],
        plugins=[Guard()],
        callback_handler=lambda **event: seen.append(event.get("tool_stream_event", {}).get("data")),
    )
    agent("Charge Ann.")
    assert "under way" in seen and answers(agent) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def test_a_structured_output_is_no_tool_of_ours(semel_ledger: Ledger) -> None:
    class Receipt(BaseModel):
        id: str

    agent = Agent(Scripted(1, 1, name="Receipt", args='{"id": "ch_1"}'), plugins=[Guard(run="order-42")])
    for _ in range(2):
        assert agent("Which?", structured_output_model=Receipt).structured_output == Receipt(id="ch_1")
    assert semel_ledger.effects() == []


def test_without_semel_the_model_repeats_a_lost_answer(world: World) -> None:
    agent = unguarded(acting(world.path, "lose"), 1, 1, "Done.")
    agent("Charge Ann.")
    assert answers(agent) == ["Error: TimeoutError - the answer was lost"] * 2
    assert world.acts() == ["ann"] * 2


def test_without_semel_a_crashed_call_runs_again(world: World, env: dict[str, str]) -> None:
    crash("test_strands", {**env, "UNGUARDED": "yes"})
    unguarded(acting(world.path, "answer"), 1, "Done.")("Charge Ann.")
    assert world.acts() == ["ann"] * 2


def test_without_semel_equal_calls_all_run(world: World) -> None:
    unguarded(acting(world.path, "answer"), 3, "Done.")("Charge Ann.")
    assert world.acts() == ["ann"] * 3
