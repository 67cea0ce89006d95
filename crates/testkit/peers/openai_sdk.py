"""The official OpenAI client, doing what a plan says (see steps.py).

A step is {"do": "chat" | "responses", "args": {…}, "stream": false, "abandon_after": events}.
"""

from openai import OpenAI
from recording import client_options, extra_headers
from steps import drive


def call(plan, step, attempts):
    client = OpenAI(api_key=plan.get("api_key", "sk-test"), **client_options(plan, attempts))
    create = client.chat.completions.create if step["do"] == "chat" else client.responses.create
    args = {"model": "m", **step["args"], "extra_headers": extra_headers(step)}
    if not step.get("stream"):
        answer = create(**args)
        return chat(answer) if step["do"] == "chat" else response(answer)
    events, types = [], []
    with create(stream=True, **args) as stream:
        for event in stream:
            events.append(event)
            types.append(getattr(event, "type", "chunk"))
            if len(events) == step.get("abandon_after"):
                return {"abandoned": True, "types": types}
    # Of a response, this SDK hands an error on as one more event.
    if types[-1:] == ["error"]:
        raise RuntimeError(events[-1].message)
    value = chunks(events) if step["do"] == "chat" else response(getattr(events[-1], "response", None))
    return {**value, "types": types}


def chat(answer):
    message = answer.choices[0].message
    calls = [{"name": made.function.name, "arguments": made.function.arguments} for made in message.tool_calls or []]
    finish = answer.choices[0].finish_reason
    return {"id": answer.id, "text": message.content, "calls": calls, "finish": finish, "usage": usage(answer)}


def chunks(events):
    text, calls, finish, used = "", [], None, None
    for event in events:
        used = usage(event) or used
        for choice in event.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for made in choice.delta.tool_calls or []:
                if made.id:
                    calls.append({"name": made.function.name, "arguments": ""})
                calls[-1]["arguments"] += made.function.arguments or ""
    return {"id": events[0].id, "text": text or None, "calls": calls, "finish": finish, "usage": used}


def response(answer):
    if answer is None:
        return {"id": None}
    calls = [{"name": item.name, "arguments": item.arguments} for item in answer.output if item.type == "function_call"]
    text = answer.output_text or None
    return {"id": answer.id, "text": text, "calls": calls, "finish": answer.status, "usage": usage(answer)}


def usage(answer):
    return answer.usage.total_tokens if getattr(answer, "usage", None) else None


drive(call)
