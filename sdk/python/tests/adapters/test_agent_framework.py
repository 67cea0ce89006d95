"""Microsoft Agent Framework."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework.exceptions import UserInputRequiredException
from conftest import World
from failures import Act, acting, crash, example

from semel.adapters.agent_framework import Guard
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
SEEN = {"verdict": "applied", "reason": "seen in the dashboard", "reply": {"id": "ch_1"}}
NEVER = {"verdict": "not_applied", "reason": "not in the dashboard"}


class Scripted(FunctionInvocationLayer, BaseChatClient):
    """A model that says these things, one after the other: tool calls for a number, text for a text."""

    def __init__(self, *steps: int | str, args: dict[str, Any] | None = None) -> None:
        super().__init__()
        self.steps, self.args, self.calls = list(steps), args or {"customer": "ann"}, 0

    async def _inner_get_response(self, **_: Any) -> ChatResponse:
        step = self.steps.pop(0)
        contents = [Content.from_text(step)] if isinstance(step, str) else [self.call() for _ in range(step)]
        return ChatResponse(messages=[Message("assistant", contents)])

    def call(self) -> Content:
        self.calls += 1
        return Content.from_function_call(f"call_{self.calls}", "charge", arguments=self.args)


def agent_of(act: Act, *steps: int | str) -> Agent:
    return example("agent_framework").agent_of(Scripted(*steps), act)


def session(name: str = "thread-1") -> AgentSession:
    return AgentSession(session_id=name)


def run(agent: Agent, session: AgentSession, given: Any = "Charge Ann.") -> AgentResponse:
    return asyncio.run(agent.run(given, session=session))


def question(result: AgentResponse) -> dict[str, Any]:
    asked, *same = [dict(request.additional_properties) for request in result.user_input_requests]
    assert all(one == asked for one in same)
    return asked


def decide(agent: Agent, session: AgentSession, result: AgentResponse, ruling: dict[str, Any]) -> AgentResponse:
    approvals = [request.to_function_approval_response(True) for request in result.user_input_requests]
    for approval in approvals:
        approval.additional_properties |= ruling
    return run(agent, session, Message("user", approvals))


def answers(result: AgentResponse) -> list[str]:
    contents = [content for message in result.messages for content in message.contents]
    return [content.result for content in contents if content.type == "function_result"]


def crashing() -> None:
    of = unguarded if "UNGUARDED" in os.environ else agent_of
    run(of(acting(os.environ["WORLD"], "die"), 1), session())


def test_the_answer_is_lost_a_person_decides_and_the_record_answers(world: World) -> None:
    agent, thread = agent_of(acting(world.path, "lose"), 1, 1, "Done."), session()
    first = run(agent, thread)
    asked = question(first)
    assert asked["tool"] == "charge" and asked["args"] == {"customer": "ann"}
    assert "may have been carried out" in asked["message"] and "try again" not in asked["message"]

    done = decide(agent, thread, first, SEEN)
    assert done.text == "Done."
    assert answers(done) == ['{"id": "ch_1"}'] * 2  # the model called once more
    assert world.acts() == ["ann"]


def test_a_stored_session_goes_on_in_another_agent(world: World) -> None:
    thread = session()
    first = run(agent_of(acting(world.path, "lose"), 1), thread)
    stored = AgentSession.from_dict(thread.to_dict())
    done = decide(agent_of(acting(world.path, "answer"), "Done."), stored, first, SEEN)
    assert answers(done) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def test_an_approval_alone_decides_nothing(world: World) -> None:
    agent, thread = agent_of(acting(world.path, "lose"), 1, "Done."), session()
    done = decide(agent, thread, run(agent, thread), {})
    [told] = answers(done)
    assert "may have been carried out" in told and "Safe to retry: no" in told
    assert world.acts() == ["ann"]


def test_a_ruling_is_about_one_attempt(world: World) -> None:
    agent, thread = agent_of(acting(world.path, "lose"), 1, "Done."), session()
    first = run(agent, thread)
    before = thread.to_dict()
    second = decide(agent, thread, first, NEVER)
    assert (question(first)["attempt"], question(second)["attempt"]) == (1, 2)
    # The program comes back after a crash and brings the first ruling again.
    thread = AgentSession.from_dict(before)
    third = decide(agent, thread, first, NEVER)
    assert question(third) == question(second)
    assert world.acts() == ["ann", "ann"]
    done = decide(agent, thread, third, SEEN)
    assert answers(done) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann", "ann"]


def test_the_run_is_the_session(world: World) -> None:
    for name in "one", "two", "one":
        run(agent_of(acting(world.path, "answer"), 1, "Done."), session(name))
    assert world.acts() == ["ann", "ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    done = run(agent_of(acting(world.path, "answer"), 3, "Done."), session())
    assert answers(done) == ['{"id": "ch_1"}'] * 3
    assert world.acts() == ["ann"]


def test_equal_calls_whose_answer_is_lost_are_decided_once(world: World) -> None:
    agent, thread = agent_of(acting(world.path, "lose"), 3, "Done."), session()
    done = decide(agent, thread, run(agent, thread), SEEN)
    assert answers(done) == ['{"id": "ch_1"}'] * 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_agent_framework", env)
    agent, thread = agent_of(acting(world.path, "answer"), 1, "Done."), session()
    done = decide(agent, thread, run(agent, thread), SEEN)
    assert answers(done) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def test_wrong_arguments_are_no_doubt(world: World, semel_ledger: Ledger) -> None:
    charge = tool(acting(world.path, "answer"))
    agent = Agent(Scripted(1, "Done.", args={"client": "ann"}), tools=[charge], middleware=[Guard()])
    assert answers(run(agent, session())) == ["Error: Argument parsing failed."]
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    assert world.acts() == []


def test_a_cancelled_call_is_a_doubt(world: World) -> None:
    @tool
    async def charge(customer: str) -> None:
        world.act(customer)
        acted.set()
        await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.ensure_future(agent.run("Charge Ann.", session=session()))
        await acted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    acted = asyncio.Event()
    agent = Agent(Scripted(1, 1), tools=[charge], middleware=[Guard()])
    asyncio.run(cancel())
    assert "may have been carried out" in question(run(agent, session()))["message"]
    assert world.acts() == ["ann"]


def test_a_pause_of_the_tool_itself_is_no_doubt(world: World, semel_ledger: Ledger) -> None:
    asked: list[Content] = []

    @tool
    def charge(customer: str) -> dict[str, str]:
        if not asked:
            call = Content.from_function_call("own", "charge", id="own")
            asked.append(Content.from_function_approval_request("own", call))
            raise UserInputRequiredException(asked)
        world.act(customer)
        return {"id": "ch_1"}

    agent = Agent(Scripted(1, 1, "Done."), tools=[charge], middleware=[Guard()])
    assert run(agent, session()).user_input_requests == asked
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    assert answers(run(agent, session())) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def test_a_doubt_of_a_tool_that_needs_approval_is_asked_about_too(world: World) -> None:
    charge = tool(acting(world.path, "lose"), approval_mode="always_require")
    agent, thread = Agent(Scripted(1, "Done."), tools=[charge], middleware=[Guard(run="order-42")]), session()
    asked = run(agent, thread)
    assert world.acts() == []
    doubt = decide(agent, thread, asked, {})
    assert "may have been carried out" in question(doubt)["message"]
    assert answers(decide(agent, thread, doubt, SEEN)) == ['{"id": "ch_1"}']
    assert world.acts() == ["ann"]


def unguarded(act: Act, *steps: int | str) -> Agent:
    agent = agent_of(act, *steps)
    agent.middleware = []
    return agent


def test_without_semel_the_model_repeats_a_lost_answer(world: World) -> None:
    done = run(unguarded(acting(world.path, "lose"), *[1] * 9), session())
    assert answers(done) == ["Error: Function failed."] * 3  # it gives up after three errors in a row
    assert world.acts() == ["ann"] * 3


def test_without_semel_equal_calls_all_run(world: World) -> None:
    run(unguarded(acting(world.path, "answer"), 3, "Done."), session())
    assert world.acts() == ["ann"] * 3


def test_without_semel_a_crashed_call_runs_again(world: World, env: dict[str, str]) -> None:
    crash("test_agent_framework", {**env, "UNGUARDED": "yes"})
    run(unguarded(acting(world.path, "answer"), 1, "Done."), session())
    assert world.acts() == ["ann"] * 2
