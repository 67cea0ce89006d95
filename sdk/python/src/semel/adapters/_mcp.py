"""A tool call that an MCP server carries out. Both Python packages for such servers are built on `mcp_types`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp_types import CallToolResult, ElicitRequest, ElicitRequestFormParams, InputRequiredResult, TextContent, Tool
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from .._adapt import acall, aresolve
from .._errors import InDoubt, Refused, ReplyLost, SemelError
from ._ruling import unless_decided

Result: TypeAlias = CallToolResult | InputRequiredResult
_ANSWER = {
    "type": "object",
    "properties": {
        "happened": {"type": "boolean", "title": "It happened"},
        "reason": {"type": "string", "title": "How do you know?"},
    },
    "required": ["happened", "reason"],
}


class Request(Protocol):
    """The request, as the contexts of both packages have it."""

    session: Any
    request_id: Any
    protocol_version: Any


class Failed(Exception):
    """The tool's author says that it failed. That is a refusal, and no doubt."""

    def __init__(self, result: CallToolResult) -> None:
        super().__init__(" ".join(getattr(part, "text", part.type) for part in result.content))
        self.result = result


class Paused(Exception):
    """The tool asks its client something first."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the tool waits for its client")
        self.result = result


async def guarded(
    name: str,
    arguments: dict[str, Any],
    act: Callable[[], Awaitable[Result]],
    *,
    tool: Tool | None,
    run: str | None,
    request: Request | None,
    meta: Any,
    responses: Any,
) -> Result:
    """The result of the tool, or semel's word on why there is none.

    tool: as it is listed. meta, responses: of the request.
    """
    if tool is not None and tool.annotations is not None and tool.annotations.read_only_hint:
        return await act()  # the server's own word, and the server has asked for the guard
    meta = meta or {}

    async def perform() -> CallToolResult:
        result = await act()
        if isinstance(result, InputRequiredResult):
            raise Paused(result)
        if result.is_error:
            raise Failed(result)
        return result

    while True:
        try:
            return await acall(
                name,
                arguments,
                perform,
                run=run or meta.get("dev.semel/run-id"),
                call_id=meta.get("claudecode/toolUseId"),
                refused=Failed,
                pause=(Paused, UrlElicitationRequiredError),
                dump=lambda result: result.model_dump(by_alias=True, mode="json", exclude_none=True),
                load=_load,
            )
        except (Failed, Paused) as end:
            return end.result
        except InDoubt as doubt:
            answer = await _ask(doubt, request, responses or {})
            if isinstance(answer, InputRequiredResult):
                return answer
            if answer is None:
                return _told(doubt)
            verdict = "applied" if answer["happened"] else "not_applied"
            with unless_decided():
                await aresolve(str(doubt.effect_id), verdict, str(answer.get("reason") or "decided by a person"))
        except ReplyLost as lost:
            if lost.value is not None:
                return lost.value  # it cannot be kept, but it is here
            return _told(lost, is_error=tool is not None and tool.output_schema is not None)
        except (SemelError, Refused) as error:
            return _told(error)


async def _ask(doubt: InDoubt, request: Request | None, responses: Any) -> Any:
    """The answer of the client's user, or the result that asks for it. None: nobody was asked, or nobody knows."""
    capabilities = None if request is None else request.session.client_capabilities
    if request is None or capabilities is None or capabilities.elicitation is None:
        return None
    message = f"{doubt}\nDid it happen? Look before you answer."
    if request.protocol_version in MODERN_PROTOCOL_VERSIONS:
        # The client calls again with the answer. Its name says which attempt it is about.
        name = f"semel/{doubt.effect_id}/{doubt.answer.get('attempt')}"
        if name not in responses:
            params = ElicitRequestFormParams(message=message, requested_schema=_ANSWER)
            return InputRequiredResult(input_requests={name: ElicitRequest(params=params)})
        given = responses[name]
    else:
        given = await request.session.elicit(
            message=message, requested_schema=_ANSWER, related_request_id=request.request_id
        )
    content = given.content if given.action == "accept" else None
    return content if content and isinstance(content.get("happened"), bool) else None


def _told(error: Exception, is_error: bool = True) -> CallToolResult:
    answer = getattr(error, "answer", None)
    receipt = {"dev.semel/receipt": {**answer, "data": None}} if answer else None
    return CallToolResult(content=[TextContent(text=str(error))], is_error=is_error, _meta=receipt)


def _load(data: Any) -> CallToolResult:
    if isinstance(data, dict) and isinstance(data.get("content"), list):
        return CallToolResult.model_validate(data)
    # A person brought it. Both packages have a value that is no object as `result`.
    structured = data if isinstance(data, dict) else {"result": data}
    text = data if isinstance(data, str) else json.dumps(data)
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)
