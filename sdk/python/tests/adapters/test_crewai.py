"""CrewAI."""

from __future__ import annotations

import os
from typing import Any

import pytest

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="true")
pytest.importorskip("crewai")

from conftest import World
from crewai import BaseLLM
from failures import Act, acting, crash, effect_id_in, example, remove_guard

import semel
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
CALL = 'Thought: -\nAction: charge\nAction Input: {"customer": "ann"}\n'
ANN = {"name": "charge", "arguments": '{"customer": "ann"}'}


class Scripted(BaseLLM):
    """A model that says these things, one after the other: tool calls for a number, text for a text."""

    native: bool  # its calls are objects, and not text
    steps: list[int | str]
    heard: str = ""

    def supports_function_calling(self) -> bool:
        return self.native

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        self.heard = "\n".join(str(message["content"]) for message in messages)
        step = self.steps.pop(0)
        if self.native:
            return step if isinstance(step, str) else [{"id": f"call_{n}", "function": ANN} for n in range(step)]
        return CALL if isinstance(step, int) else f"Thought: -\nFinal Answer: {step}"


def run(act: Act, *steps: int | str, native: bool = False) -> str:
    """What the model has read in the end."""
    model = Scripted(model="scripted", native=native, steps=list(steps))
    with semel.run("order-42"):
        assert str(example("crewai").crew_of(model, act).kickoff()) == "Done."
    return model.heard


def crashing() -> None:
    run(acting(os.environ["WORLD"], "die"), 1)


@pytest.mark.parametrize("native", [False, True])
def test_the_answer_is_lost_a_person_decides_and_the_record_answers(native: bool, world: World) -> None:
    act = acting(world.path, "lose")
    told = run(act, 1, "Done.", native=native)
    assert "may have been carried out" in told and "Safe to retry: no" in told
    assert "try again" not in told.lower()
    assert world.acts() == ["ann"]
    semel.resolve(effect_id_in(told), "applied", "seen in the dashboard", {"id": "ch_1"})
    assert "ch_1" in run(act, 1, "Done.", native=native)
    assert world.acts() == ["ann"]


def test_equal_calls_in_one_step_run_once(world: World) -> None:
    assert run(acting(world.path, "answer"), 3, "Done.", native=True).count("ch_1") == 3
    assert world.acts() == ["ann"]


def test_after_a_crash_the_same_call_waits_for_a_person(world: World, env: dict[str, str]) -> None:
    crash("test_crewai", env)
    assert "may have been carried out" in run(acting(world.path, "answer"), 1, "Done.")
    assert world.acts() == ["ann"]


def test_a_refusal_is_no_doubt(world: World, semel_ledger: Ledger) -> None:
    def refuse(_: str) -> None:
        raise semel.Refused("the till is closed")

    assert "the till is closed" in run(refuse, 1, "Done.")
    assert [effect["state"] for effect in semel_ledger.effects()] == ["not_applied"]


@pytest.mark.parametrize(
    ("native", "ending", "calls", "runs"), [(False, "lose", 1, 6), (True, "lose", 1, 1), (True, "answer", 3, 3)]
)
def test_without_semel_it_runs_more_than_once(
    native: bool, ending: str, calls: int, runs: int, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    run(acting(world.path, ending), calls, "Done.", native=native)
    assert len(world.acts()) == runs


def test_without_semel_it_runs_again_after_a_crash(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_crewai", env, guarded=False)
    remove_guard(monkeypatch.setattr)
    run(acting(world.path, "answer"), 1, "Done.")
    assert world.acts() == ["ann", "ann"]
