"""Microsoft Agent Framework: `Agent(client, tools=[charge], middleware=[Guard()])`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from agent_framework import Content, FunctionInvocationContext, FunctionMiddleware
from agent_framework._tools import _FunctionArgumentValidationError
from agent_framework.exceptions import UserInputRequiredException
from pydantic_core import to_jsonable_python

from .._adapt import acall, aresolve
from .._errors import InDoubt, Refused, ReplyLost, SemelError
from ._ruling import question, ruling, unless_decided


class Guard(FunctionMiddleware):
    """Guards all tools of an agent. The run is the session.

    A call that meets a doubt asks for an approval. Approved with a person's ruling in its properties, it is answered
    from the record, or runs if the ruling is that it never did.
    """

    def __init__(self, run: str | None = None) -> None:
        self.run = run

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        name, args = context.function.name, to_jsonable_python(context.arguments)
        approval = context.metadata.get("approval_response")
        answer = {} if approval is None else approval.additional_properties

        async def act() -> Any:
            await call_next()
            if isinstance(context.result, Content) and context.result.type == "function_approval_request":
                raise _Paused
            return context.result

        while True:
            try:
                context.result = await acall(
                    name,
                    args,
                    act,
                    run=self.run or (context.session.session_id if context.session else None),
                    call_id=context.metadata.get("call_id"),
                    refused=_FunctionArgumentValidationError,
                    pause=(_Paused, UserInputRequiredException),
                    dump=_dump,
                    load=_load,
                )
            except _Paused:
                pass  # the result is the request
            except InDoubt as doubt:
                decided = ruling(answer, doubt)
                if decided is not None:
                    with unless_decided():
                        await aresolve(**decided)
                    continue
                asked = question(doubt, name, args)
                if asked.items() <= answer.items():
                    context.result = str(doubt)  # an approval alone decides nothing
                else:
                    context.result = _request(context, asked)
            except (SemelError, Refused) as error:
                context.result = str(error)
                if isinstance(error, ReplyLost) and error.value is not None:
                    context.result = error.value  # it cannot be kept, but it is here
            return


class _Paused(Exception):
    """Something nearer to the tool asks for an approval."""


def _request(context: FunctionInvocationContext, asked: dict[str, Any]) -> Content:
    call_id = context.metadata["call_id"]
    one = context.metadata.get("function_call_occurrence_id", call_id)
    call = Content.from_function_call(call_id, asked["tool"], arguments=asked["args"], id=one)
    return Content.from_function_approval_request(one, call, additional_properties=asked)


def _dump(value: Any) -> Any:
    if isinstance(value, list) and value and all(isinstance(one, Content) for one in value):
        return {"__contents__": [one.to_dict() for one in value]}
    return value


def _load(data: Any) -> Any:
    if isinstance(data, dict) and data.keys() == {"__contents__"}:
        return [Content.from_dict(one) for one in data["__contents__"]]
    return data
