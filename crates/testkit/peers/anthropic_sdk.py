"""The official Anthropic client, doing what a plan says (see steps.py).

A step is {"do": "messages", "args": {…}, "stream": false, "abandon_after": events}.
"""

from anthropic import Anthropic
from recording import client_options, extra_headers
from steps import drive


def call(plan, step, attempts):
    client = Anthropic(api_key=plan.get("api_key", "sk-ant-test"), **client_options(plan, attempts))
    args = {"model": "m", "max_tokens": 100, **step["args"], "extra_headers": extra_headers(step)}
    if not step.get("stream"):
        return message(client.messages.create(**args))
    types = []
    with client.messages.stream(**args) as stream:
        for event in stream:
            types.append(event.type)
            if len(types) == step.get("abandon_after"):
                return {"abandoned": True, "types": types}
        return {**message(stream.get_final_message()), "types": types}


def message(answer):
    text = "".join(block.text for block in answer.content if block.type == "text") or None
    calls = [{"name": block.name, "arguments": block.input} for block in answer.content if block.type == "tool_use"]
    used = answer.usage.input_tokens + answer.usage.output_tokens
    return {"id": answer.id, "text": text, "calls": calls, "finish": answer.stop_reason, "usage": used}


drive(call)
