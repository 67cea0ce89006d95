"""Google ADK."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk")

from conftest import World
from failures import Act, acting, crash, effect_id_in, example
from google.adk.agents import LlmAgent
from google.adk.apps import App, ResumabilityConfig
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins import ReflectAndRetryToolPlugin
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.tools import BaseTool, FunctionTool, ToolContext
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

import semel
from semel.adapters.google_adk import guard
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
SEEN = {"verdict": "applied", "reason": "seen in the dashboard", "reply": {"id": "ch_1"}}
NEVER = {"verdict": "not_applied", "reason": "not in the dashboard"}
CONFIRM = "adk_request_confirmation"


class Scripted(BaseLlm):
    """A model that says these things, one after the other: tool calls for a number, text for a text."""

    model: str = "scripted"
    steps: list[int | str]
    args: dict[str, Any] = {"customer": "ann"}
    calls: int = 0

    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncIterator[LlmResponse]:
        step = self.steps.pop(0)
        parts = [types.Part(text=step)] if isinstance(step, str) else [self.call() for _ in range(step)]
        yield LlmResponse(content=types.Content(role="model", parts=parts))

    def call(self) -> types.Part:
        self.calls += 1
        return types.Part(function_call=types.FunctionCall(id=f"call_{self.calls}", name="charge", args=self.args))


class Session:
    """One conversation with an agent, in memory or in that file."""

    def __init__(self, agent: LlmAgent, *plugins: Any, user: str = "bob", file: str | None = None) -> None:
        resumable = ResumabilityConfig(is_resumable=True)
        app = App(name="billing", root_agent=agent, plugins=list(plugins), resumability_config=resumable)
        store = DatabaseSessionService(f"sqlite+aiosqlite:///{file}") if file else InMemorySessionService()
        self.runner, self.user = Runner(app=app, session_service=store, auto_create_session=True), user
        self.questions: list[types.FunctionCall] = []
        self.answers: list[Any] = []

    def run(self, *parts: types.Part, resume: str | None = None) -> None:
        asyncio.run(self.events(*parts, resume=resume))

    async def events(self, *parts: types.Part, resume: str | None = None) -> None:
        message = types.Content(role="user", parts=list(parts) or [types.Part(text="Charge Ann.")])
        self.questions = []
        async for event in self.runner.run_async(
            user_id=self.user, session_id="s1", new_message=None if resume else message, invocation_id=resume
        ):
            self.questions += [call for call in event.get_function_calls() if call.name == CONFIRM]
            if not event.actions.requested_tool_confirmations:
                self.answers += [response.response for response in event.get_function_responses()]

    def question(self) -> dict[str, Any]:
        asked, *same = [(one.args or {})["toolConfirmation"]["payload"] for one in self.questions]
        assert all(one == asked for one in same)
        return asked

    def decide(self, payload: Any) -> None:
        confirmation = {"confirmed": True, "payload": payload}
        self.run(
            *(
                types.Part(function_response=types.FunctionResponse(id=one.id, name=CONFIRM, response=confirmation))
                for one in self.questions
            )
        )


def agent_of(act: Act, *steps: int | str) -> LlmAgent:
    return example("google_adk").agent_of(Scripted(steps=list(steps)), act)


def agent_with(tool: Any, *steps: int | str, **model: Any) -> LlmAgent:
    return LlmAgent(name="billing", model=Scripted(steps=list(steps), **model), tools=[tool])


def crashing() -> None:
    world = Path(os.environ["WORLD"])
    of = agent_with if "UNGUARDED" in os.environ else agent_of
    Session(of(acting(world, "die"), 1), file=f"{world}.sessions").run()


def resumed(world: World, agent: LlmAgent) -> Session:
    """The framework's own resume of the invocation that crashed: it makes the stored call again."""
    session = Session(agent, file=f"{world.path}.sessions")
    stored = asyncio.run(session.runner.session_service.get_session(app_name="billing", user_id="bob", session_id="s1"))
    assert stored
    session.run(resume=stored.events[-1].invocation_id)
    return session


def test_the_answer_is_lost_a_person_decides_and_the_record_answers(world: World) -> None:
    session = Session(agent_of(acting(world.path, "lose"), 1, 1, "Done."))
    session.run()
    asked = session.question()
    assert asked["tool"] == "charge" and asked["args"] == {"customer": "ann"}
    assert "may have been carried out" in asked["message"] and "try again" not in asked["message"]

    session.decide({**asked, **SEEN})
    assert session.answers == [{"id": "ch_1"}] * 2  # the model called once more
    assert world.acts() == ["ann"]


def test_an_approval_alone_decides_nothing(world: World) -> None:
    session = Session(agent_of(acting(world.path, "lose"), 1, "Done."))
    session.run()
    session.decide(None)
    [told] = session.answers
    assert "may have been carried out" in told["error"] and "Safe to retry: no" in told["error"]
    assert world.acts() == ["ann"]


def test_a_ruling_is_about_one_attempt(world: World) -> None:
    session = Session(agent_of(acting(world.path, "lose"), 1, 1, "Done."))
    session.run()
    first = session.question()
    session.decide({**first, **NEVER})  # it runs, and the framework asks again at the next call
    second = session.question()
    assert "may have been carried out" in session.answers[0]["error"]
    assert (first["attempt"], second["attempt"]) == (1, 2)
    assert world.acts() == ["ann", "ann"]
    session.decide({**first, **NEVER})
    assert "may have been carried out" in session.answers[1]["error"]
    assert world.acts() == ["ann", "ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    session = Session(agent_of(acting(world.path, "answer"), 3, "Done."))
    session.run()
    assert session.answers == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


def test_equal_calls_whose_answer_is_lost_are_decided_once(world: World) -> None:
    session = Session(agent_of(acting(world.path, "lose"), 3, "Done."))
    session.run()
    session.decide({**session.question(), **SEEN})
    assert session.answers == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_resumed_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_google_adk", env)
    session = resumed(world, agent_of(acting(world.path, "answer"), "Done."))
    session.decide({**session.question(), **SEEN})
    assert session.answers == [{"id": "ch_1"}]
    assert world.acts() == ["ann"]


def test_the_run_is_the_session_of_one_user(world: World) -> None:
    for user in "bob", "eve", "bob":
        Session(agent_of(acting(world.path, "answer"), 1, "Done."), user=user).run()
    assert world.acts() == ["ann", "ann"]


def test_a_plugin_that_retries_does_not_run_the_tool_again(world: World) -> None:
    session = Session(agent_of(acting(world.path, "lose"), 1, "Done."), ReflectAndRetryToolPlugin())
    session.run()
    session.decide({**session.question(), **SEEN})
    assert session.answers == [{"id": "ch_1"}]
    assert world.acts() == ["ann"]


def test_wrong_arguments_are_no_doubt(world: World, semel_ledger: Ledger) -> None:
    session = Session(agent_with(guard(acting(world.path, "answer")), 1, "Done.", args={"client": "ann"}))
    session.run()
    assert session.answers[0]["error"].startswith("Invoking `charge()` failed")
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    assert world.acts() == []


def test_an_error_that_the_tool_made_a_result_is_a_doubt(world: World) -> None:
    def charge(customer: str) -> dict[str, str]:
        world.act(customer)
        return {"error": "MCP tool execution failed: timed out"}

    session = Session(agent_with(guard(charge), 1))
    session.run()
    assert session.question()["tool"] == "charge"
    assert world.acts() == ["ann"]


def test_a_cancelled_call_is_a_doubt(world: World) -> None:
    async def charge(customer: str) -> None:
        world.act(customer)
        acted.set()
        await asyncio.Event().wait()

    async def cancel() -> None:
        task = asyncio.ensure_future(session.events())
        await acted.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    acted = asyncio.Event()
    session = Session(agent_with(guard(charge), 1, 1))
    asyncio.run(cancel())
    session.run()
    assert "may have been carried out" in session.question()["message"]
    assert world.acts() == ["ann"]


def test_a_pause_of_the_tool_itself_is_no_doubt(world: World, semel_ledger: Ledger) -> None:
    def charge(customer: str, tool_context: ToolContext) -> dict[str, str]:
        if tool_context.tool_confirmation is None:
            tool_context.request_confirmation(payload="May I?")
            tool_context.actions.skip_summarization = True
            return {"status": "pending"}
        world.act(customer)
        return {"id": "ch_1"}

    session = Session(agent_with(guard(charge), 1, "Done."))
    session.run()
    assert session.question() == "May I?"
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]
    session.decide("yes")
    assert session.answers == [{"id": "ch_1"}]
    assert world.acts() == ["ann"]


def test_a_doubt_of_a_tool_that_needs_confirmation_is_decided_by_id(world: World) -> None:
    charge = guard(FunctionTool(acting(world.path, "lose"), require_confirmation=True))
    session = Session(agent_with(charge, 1, 1, "Done."))
    session.run()
    assert world.acts() == []
    session.decide(None)
    told = session.answers[0]["error"]
    assert "may have been carried out" in told
    semel.resolve(effect_id_in(told), "applied", "seen", {"id": "ch_1"})
    session.decide(None)
    assert session.answers[1:] == [{"id": "ch_1"}]
    assert world.acts() == ["ann"]


def test_all_tools_of_a_toolset(world: World) -> None:
    class Till(BaseToolset):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            return [FunctionTool(acting(world.path, "answer"))]

        async def close(self) -> None: ...

    session = Session(agent_with(guard(Till()), 1, 1, "Done."))
    session.run()
    assert session.answers == [{"id": "ch_1"}] * 2
    assert world.acts() == ["ann"]


def test_a_tool_that_streams_is_refused() -> None:
    async def charge(customer: str) -> AsyncIterator[str]:
        yield customer

    with pytest.raises(semel.InvalidCall):
        guard(charge)


def test_without_semel_a_retrying_plugin_repeats_a_lost_answer(world: World) -> None:
    session = Session(agent_with(acting(world.path, "lose"), *[1] * 9), ReflectAndRetryToolPlugin())
    with pytest.raises(RuntimeError, match="the answer was lost"):
        session.run()  # it gives up after three retries
    assert world.acts() == ["ann"] * 4


def test_without_semel_a_crashed_call_runs_again(world: World, env: dict[str, str]) -> None:
    crash("test_google_adk", {**env, "UNGUARDED": "yes"})
    resumed(world, agent_with(acting(world.path, "answer"), "Done."))
    assert world.acts() == ["ann"] * 2


def test_without_semel_equal_calls_all_run(world: World) -> None:
    Session(agent_with(acting(world.path, "answer"), 3, "Done.")).run()
    assert world.acts() == ["ann"] * 3
