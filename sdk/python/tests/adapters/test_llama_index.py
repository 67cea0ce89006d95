"""LlamaIndex."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from conftest import World
from failures import Act, acting, crash, effect_id_in, example, remove_guard
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM

import semel

pytestmark = pytest.mark.usefixtures("semel_ledger")


def run(act: Act, *steps: int | str) -> str:
    """What the model has read in the end, when it said these things: tool calls for a number, text for a text."""
    left, calls, heard = list(steps), iter(range(1, 100)), ""

    def say(messages: Any, **_: Any) -> ChatMessage:
        nonlocal heard
        heard = "\n".join(str(message.content) for message in messages)
        step, blocks = left.pop(0), []
        if isinstance(step, str):
            return ChatMessage(role="assistant", content=step)
        for _ in range(step):
            name = f"call_{next(calls)}"
            blocks.append(ToolCallBlock(tool_call_id=name, tool_name="charge", tool_kwargs={"customer": "ann"}))
        return ChatMessage(role="assistant", blocks=blocks)

    async def go() -> str:
        agent = example("llama_index").agent_of(MockFunctionCallingLLM(response_generator=say), act)
        return str(await agent.run("Charge Ann."))

    with semel.run("order-42"):
        assert asyncio.run(go()) == "Done."
    return heard


def crashing() -> None:
    run(acting(os.environ["WORLD"], "die"), 1)


def test_the_answer_is_lost_the_model_calls_again_a_person_decides_and_the_record_answers(world: World) -> None:
    act = acting(world.path, "lose")
    told = run(act, 1, 1, "Done.")
    assert told.count("Safe to retry: no") == 2 and "try again" not in told
    semel.resolve(effect_id_in(told), "applied", "seen in the dashboard", {"id": "ch_1"})
    assert "ch_1" in run(act, 1, "Done.")
    assert world.acts() == ["ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    assert run(acting(world.path, "answer"), 3, "Done.").count("ch_1") == 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_llama_index", env)
    assert "may have been carried out" in run(acting(world.path, "answer"), 1, "Done.")
    assert world.acts() == ["ann"]


def test_the_tool_keeps_its_schema() -> None:
    agent = example("llama_index").agent_of(MockFunctionCallingLLM(), acting("nowhere", "answer"))
    [charge] = agent.tools
    assert "charge(customer: str)" in charge.metadata.description
    assert "Charges a customer." in charge.metadata.description
    assert charge.metadata.get_parameters_dict()["required"] == ["customer"]


@pytest.mark.parametrize(("ending", "steps", "runs"), [("lose", [1, 1], 2), ("answer", [3], 3)])
def test_without_semel_it_runs_more_than_once(
    ending: str, steps: list[int], runs: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    run(acting(world.path, ending), *steps, "Done.")
    assert len(world.acts()) == runs


def test_without_semel_it_runs_again_after_a_crash(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_llama_index", env, guarded=False)
    remove_guard(monkeypatch.setattr)
    run(acting(world.path, "answer"), 1, "Done.")
    assert world.acts() == ["ann", "ann"]
