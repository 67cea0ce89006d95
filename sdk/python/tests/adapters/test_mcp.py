"""MCP servers: the official SDK and FastMCP, each with clients of both eras of the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("mcp.server.mcpserver")

import mcp
from conftest import World
from failures import Act, acting, crash, effect_id_in, example
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)

import semel
import semel.adapters.mcp
from semel.testing import Ledger

pytestmark = pytest.mark.usefixtures("semel_ledger")
# "legacy" shakes hands, and the server asks in between; with "auto" the client asks its user and calls again.
KINDS = ["mcp legacy", "mcp auto", "fastmcp legacy", "fastmcp auto"]
Call = Callable[..., Awaitable[CallToolResult]]
SEEN = {"happened": True, "reason": "seen in the dashboard"}
NEVER = {"happened": False, "reason": "not in the dashboard"}
META: Any = {"dev.semel/run-id": "order-42"}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    if "fastmcp" in request.param:
        pytest.importorskip("fastmcp")
    return request.param


def server_of(kind: str, act: Act) -> Any:
    return example(kind.split()[0]).server_of(act)


@contextlib.asynccontextmanager
async def client_of(kind: str, server: Any, *answers: Any) -> AsyncIterator[Call]:
    """Calls the tool as a client does. With answers, the client can ask its user."""
    left = list(answers)
    mode = kind.split()[1]
    if "fastmcp" in kind:
        import fastmcp

        async def elicit(*_: Any) -> Any:
            return left.pop(0) or ElicitResult(action="decline")

        handler: Any = elicit if answers else None
        async with fastmcp.Client(server, mode=mode, elicitation_handler=handler) as theirs:
            yield lambda name="charge", **args: theirs.call_tool_mcp(name, args or {"customer": "ann"}, meta=META)
    else:

        async def callback(*_: Any) -> ElicitResult:
            answer = left.pop(0)
            return ElicitResult(action="accept", content=answer) if answer else ElicitResult(action="decline")

        async with mcp.Client(server, mode=mode, elicitation_callback=callback if answers else None) as client:
            yield lambda name="charge", **args: client.call_tool(name, args or {"customer": "ann"}, meta=META)


def run(kind: str, server: Any, times: int, *answers: Any) -> list[CallToolResult]:
    """Calls the tool several times, one after the other."""

    async def go() -> list[CallToolResult]:
        async with client_of(kind, server, *answers) as call:
            return [await call() for _ in range(times)]

    return asyncio.run(go())


def text_of(result: CallToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, TextContent))


def remove_guards(replace: Callable[[Any, str, Any], None]) -> None:
    replace(semel.adapters.mcp, "guard", lambda server: server)
    with contextlib.suppress(ImportError):
        import semel.adapters.fastmcp as ours
        from fastmcp.server.middleware import Middleware

        replace(ours, "Guard", Middleware)


def crashing() -> None:
    if "BARE" in os.environ:
        remove_guards(setattr)
    run(os.environ["KIND"], server_of(os.environ["KIND"], acting(os.environ["WORLD"], "die")), 1)


def test_the_answer_is_lost_the_client_calls_again_a_person_decides_and_the_record_answers(
    kind: str, world: World
) -> None:
    server = server_of(kind, acting(world.path, "lose"))
    for told in run(kind, server, 2):
        assert told.is_error
        assert "may have been carried out" in text_of(told) and "Safe to retry: no" in text_of(told)
        assert told.meta and told.meta["dev.semel/receipt"]["effect_id"] == effect_id_in(text_of(told))
    semel.resolve(effect_id_in(text_of(told)), "applied", "seen in the dashboard", {"id": "ch_1"})
    [answered] = run(kind, server, 1)
    assert not answered.is_error and answered.structured_content == {"id": "ch_1"}
    assert world.acts() == ["ann"]


def test_a_client_that_can_ask_its_user_asks_and_the_tool_does_not_run(kind: str, world: World) -> None:
    server = server_of(kind, acting(world.path, "lose"))
    [told] = run(kind, server, 1, SEEN)
    assert "charge happened" in text_of(told) and "seen in the dashboard" in text_of(told)
    assert told.is_error  # nobody knows the reply that its output schema asks for
    assert world.acts() == ["ann"]


def test_a_user_who_says_that_it_never_happened_is_asked_again_about_the_next_attempt(kind: str, world: World) -> None:
    server = server_of(kind, acting(world.path, "lose", "lose", "answer"))
    [answered] = run(kind, server, 1, NEVER, NEVER)
    assert answered.structured_content == {"id": "ch_1"}
    assert world.acts() == ["ann"] * 3


def test_a_user_who_does_not_know_decides_nothing(kind: str, world: World, semel_ledger: Ledger) -> None:
    server = server_of(kind, acting(world.path, "lose"))
    [told] = run(kind, server, 1, None)
    assert told.is_error and "may have been carried out" in text_of(told)
    assert [effect["state"] for effect in semel_ledger.effects()] == ["in_doubt"]


def test_equal_calls_at_once_run_once(kind: str, world: World) -> None:
    results = asyncio.run(at_once(kind, server_of(kind, acting(world.path, "answer"))))
    assert [result.structured_content for result in results] == [{"id": "ch_1"}] * 3
    assert world.acts() == ["ann"]


async def at_once(kind: str, server: Any) -> list[CallToolResult]:
    async with client_of(kind, server) as call:
        return await asyncio.gather(*(call() for _ in range(3)))


def test_after_a_crash_the_same_call_says_what_may_have_happened(kind: str, world: World, env: dict[str, str]) -> None:
    crash("test_mcp", {**env, "KIND": kind})
    [told] = run(kind, server_of(kind, acting(world.path, "answer")), 1)
    assert "may have been carried out" in text_of(told)
    assert world.acts() == ["ann"]


def test_a_failure_that_the_tool_reports_and_wrong_arguments_are_no_doubt(
    kind: str, world: World, semel_ledger: Ledger
) -> None:
    def closed(_: str) -> dict[str, str]:
        if "fastmcp" in kind:
            from fastmcp.exceptions import ToolError as Theirs

            raise Theirs("the till is closed")
        raise ToolError("the till is closed")

    async def go() -> None:
        async with client_of(kind, server_of(kind, closed)) as call:
            for _ in range(2):
                told = await call()
                assert told.is_error and text_of(told).endswith("the till is closed")
            told = await call(client="ann")
            assert told.is_error and "customer" in text_of(told)
            told = await call("refund")
            assert told.is_error and "Unknown tool" in text_of(told)

    asyncio.run(go())
    assert {effect["state"] for effect in semel_ledger.effects()} == {"not_applied"}


def test_an_author_who_reports_another_error_with_fastmcp_leaves_a_doubt(world: World, semel_ledger: Ledger) -> None:
    pytest.importorskip("fastmcp")
    from fastmcp.exceptions import ToolError as Theirs

    def lost(_: str) -> dict[str, str]:
        try:
            return acting(world.path, "lose")("ann")
        except TimeoutError as error:
            raise Theirs("the bank did not answer") from error

    [told] = run("fastmcp auto", server_of("fastmcp", lost), 1)
    assert "may have been carried out" in text_of(told)
    assert [effect["state"] for effect in semel_ledger.effects()] == ["in_doubt"]


def test_a_tool_that_only_reads_is_not_guarded(kind: str, world: World, semel_ledger: Ledger) -> None:
    server = server_of(kind, acting(world.path, "answer"))

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def charges(customer: str) -> str:
        world.act(customer)
        return f"{len(world.acts())}"

    async def go() -> None:
        async with client_of(kind, server) as call:
            assert [text_of(await call("charges", customer="ann")) for _ in range(2)] == ["1", "2"]

    asyncio.run(go())
    assert semel_ledger.effects() == []


@pytest.mark.parametrize("kind", ["mcp auto", "fastmcp auto"], indirect=True)
def test_a_question_of_the_tool_itself_is_no_doubt(kind: str, world: World, semel_ledger: Ledger) -> None:
    server = server_of(kind, acting(world.path, "answer"))
    if "fastmcp" in kind:
        from fastmcp import Context
    else:
        from mcp.server.mcpserver import Context  # type: ignore[assignment]
    schema = {"type": "object", "properties": {"yes": {"type": "boolean"}}}

    async def refund(customer: str, ctx: Any) -> Any:
        if not ctx.input_responses:
            asked = ElicitRequest(params=ElicitRequestFormParams(message="Really?", requested_schema=schema))
            return InputRequiredResult(input_requests={"really": asked})
        world.act(customer)
        return "done"

    refund.__annotations__["ctx"] = Context
    server.tool()(refund)

    async def go() -> None:
        async with client_of(kind, server, {"yes": True}) as call:
            assert text_of(await call("refund")) == "done"

    asyncio.run(go())
    assert [len(effect["attempts"]) for effect in semel_ledger.effects()] == [2]
    assert world.acts() == ["ann"]


@pytest.mark.parametrize(("guarded", "runs"), [(True, 1), (False, 4)])
def test_the_retries_of_fastmcp(guarded: bool, runs: int, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fastmcp")
    from fastmcp.server.middleware.error_handling import RetryMiddleware

    if not guarded:
        remove_guards(monkeypatch.setattr)
    server = server_of("fastmcp", acting(world.path, "lose"))
    server.middleware.insert(0, RetryMiddleware(base_delay=0))
    [told] = run("fastmcp auto", server, 1)
    assert ("Safe to retry: no" in text_of(told)) == guarded
    assert len(world.acts()) == runs


def test_without_semel_it_runs_more_than_once(
    kind: str, world: World, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_guards(monkeypatch.setattr)
    run(kind, server_of(kind, acting(world.path, "lose")), 2)
    assert len(world.acts()) == 2
    asyncio.run(at_once(kind, server_of(kind, acting(world.path, "answer"))))
    assert len(world.acts()) == 2 + 3
    crash("test_mcp", {**env, "KIND": kind, "BARE": "1"})
    run(kind, server_of(kind, acting(world.path, "answer")), 1)
    assert len(world.acts()) == 2 + 3 + 2
