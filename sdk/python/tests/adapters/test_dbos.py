"""DBOS, which recovers workflows from its own database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dbos")

from conftest import World
from dbos import DBOS, SetWorkflowID
from failures import Act, acting, crash, effect_id_in, example, remove_guard

import semel

pytestmark = pytest.mark.usefixtures("semel_ledger")


def launch(world: Path, act: Act) -> Any:
    """The workflow, in a process of DBOS that has started and recovers what it finds."""
    DBOS(config={"name": "orders", "system_database_url": f"sqlite:///{world.parent}/dbos.sqlite"})
    order = example("dbos").workflow_of(act)
    DBOS.launch()
    return order


@pytest.fixture(autouse=True)
def destroyed() -> Iterator[None]:
    yield
    DBOS.destroy(destroy_registry=True)


def start(order: Any, name: str = "order-1") -> Any:
    with SetWorkflowID(name):
        return DBOS.start_workflow(order, "ann")


def crashing() -> None:
    start(launch(Path(os.environ["WORLD"]), acting(os.environ["WORLD"], "die"))).get_result()


def test_the_answer_is_lost_dbos_does_not_retry_a_person_decides_and_the_record_answers(world: World) -> None:
    order = launch(world.path, acting(world.path, "lose"))
    with pytest.raises(semel.InDoubt, match="may have been carried out") as doubt:
        start(order).get_result()
    with pytest.raises(semel.InDoubt):  # another workflow, for the same customer
        start(order, "order-2").get_result()
    semel.resolve(effect_id_in(str(doubt.value)), "applied", "seen in the dashboard", {"id": "ch_1"})
    assert DBOS.fork_workflow("order-1", 1).get_result() == {"id": "ch_1"}
    assert world.acts() == ["ann"]


def test_a_workflow_recovered_after_a_crash_reads_the_doubt(world: World, env: dict[str, str]) -> None:
    crash("test_dbos", env)
    launch(world.path, acting(world.path, "answer"))
    with pytest.raises(semel.InDoubt, match="may have been carried out"):
        DBOS.retrieve_workflow("order-1").get_result()
    assert world.acts() == ["ann"]


def test_equal_steps_at_once_run_once(world: World) -> None:
    order = launch(world.path, acting(world.path, "answer"))
    handles = [start(order, f"order-{n}") for n in range(3)]
    assert [handle.get_result() for handle in handles] == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


def test_without_semel_a_lost_answer_runs_it_again(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_guard(monkeypatch.setattr)
    order = launch(world.path, acting(world.path, "lose", "lose", "answer"))
    assert start(order).get_result() == {"id": "ch_1"}
    assert world.acts() == ["ann"] * 3


def test_without_semel_a_recovered_workflow_runs_it_again(
    world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_dbos", env, guarded=False)
    remove_guard(monkeypatch.setattr)
    launch(world.path, acting(world.path, "answer"))
    assert DBOS.retrieve_workflow("order-1").get_result() == {"id": "ch_1"}
    assert world.acts() == ["ann", "ann"]


def test_without_semel_equal_steps_at_once_all_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_guard(monkeypatch.setattr)
    order = launch(world.path, acting(world.path, "answer"))
    for handle in [start(order, f"order-{n}") for n in range(3)]:
        handle.get_result()
    assert world.acts() == ["ann"] * 3
