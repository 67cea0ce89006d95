"""Temporal, with its development server."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

pytest.importorskip("temporalio")

from conftest import World
from failures import Act, acting, crash, effect_id_in, example, remove_guard
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

import semel

pytestmark = pytest.mark.usefixtures("semel_ledger")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server of our own."""
    binary = shutil.which("temporal", path=f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}")
    if binary is None:
        pytest.skip("the Temporal development server is not installed")
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(WorkflowEnvironment.start_local(dev_server_existing_path=binary))
    yield server.client.service_client.config.target_host
    loop.run_until_complete(server.shutdown())
    loop.close()


def run(address: str, world: str, act: Act, orders: int = 1) -> list[Any]:
    """A worker, and the workflows of one customer, started or found again. Their results, or why there is none."""

    async def go() -> list[Any]:
        client, module = await Client.connect(address), example("temporal")
        with ThreadPoolExecutor(4) as threads:
            async with Worker(
                client,
                task_queue=world,
                workflows=[module.Order],
                activities=[module.activity_of(act)],
                activity_executor=threads,
                workflow_runner=UnsandboxedWorkflowRunner(),  # the example has no name to be imported by
            ):
                return await asyncio.gather(*(ended(client, f"{world} {n}") for n in range(orders)))

    async def ended(client: Client, name: str) -> Any:
        attach = WorkflowIDConflictPolicy.USE_EXISTING
        order = await client.start_workflow("Order", "ann", id=name, task_queue=world, id_conflict_policy=attach)
        try:
            return await order.result()
        except WorkflowFailureError as failure:
            assert isinstance(failure.cause, ActivityError)
            return failure.cause.cause

    return asyncio.run(go())


def crashing() -> None:
    run(os.environ["TEMPORAL"], os.environ["WORLD"], acting(os.environ["WORLD"], "die"))


def doubt_in(results: list[Any]) -> str:
    [error] = results
    assert isinstance(error, ApplicationError) and error.type == "InDoubt"
    assert "may have been carried out" in error.message
    return effect_id_in(error.message)


def test_the_answer_is_lost_temporal_does_not_retry_a_person_decides_and_the_record_answers(
    address: str, world: World
) -> None:
    act = acting(world.path, "lose")
    effect_id = doubt_in(run(address, str(world.path), act))
    semel.resolve(effect_id, "applied", "seen in the dashboard", {"id": "ch_1"})
    assert run(address, str(world.path), act) == [{"id": "ch_1"}]
    assert world.acts() == ["ann"]


def test_a_worker_that_takes_over_after_a_crash_reads_the_doubt(
    address: str, world: World, env: dict[str, str]
) -> None:
    crash("test_temporal", {**env, "TEMPORAL": address})
    doubt_in(run(address, str(world.path), acting(world.path, "answer")))
    assert world.acts() == ["ann"]


def test_equal_activities_at_once_run_once(address: str, world: World) -> None:
    assert run(address, str(world.path), acting(world.path, "answer"), orders=3) == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


def test_without_semel_a_lost_answer_runs_it_again(
    address: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    assert run(address, str(world.path), acting(world.path, "lose", "lose", "answer")) == [{"id": "ch_1"}]
    assert world.acts() == ["ann"] * 3


def test_without_semel_a_worker_that_takes_over_runs_it_again(
    address: str, world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    crash("test_temporal", {**env, "TEMPORAL": address}, guarded=False)
    remove_guard(monkeypatch.setattr)
    assert run(address, str(world.path), acting(world.path, "answer")) == [{"id": "ch_1"}]
    assert world.acts() == ["ann"] * 2


def test_without_semel_equal_activities_at_once_all_run(
    address: str, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guard(monkeypatch.setattr)
    run(address, str(world.path), acting(world.path, "answer"), orders=3)
    assert world.acts() == ["ann"] * 3
