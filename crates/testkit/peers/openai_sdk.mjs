// The official OpenAI client, doing what a plan says: the same steps as openai_sdk.py.

import { drive, headers, load, options } from "./steps.mjs";

const { default: OpenAI } = await load("openai");

async function call(plan, step, attempts) {
  const client = new OpenAI({ apiKey: plan.api_key ?? "sk-test", ...options(plan, attempts) });
  const resource = step.do === "chat" ? client.chat.completions : client.responses;
  const args = { model: "m", ...step.args };
  const more = { headers: headers(step) };
  if (!step.stream) {
    const answer = await resource.create(args, more);
    return step.do === "chat" ? chat(answer) : response(answer);
  }
  const events = [];
  const types = [];
  for await (const event of await resource.create({ ...args, stream: true }, more)) {
    events.push(event);
    types.push(event.type ?? "chunk");
    if (events.length === step.abandon_after) return { abandoned: true, types };
  }
  return { ...(step.do === "chat" ? chunks(events) : response(events.at(-1).response)), types };
}

function chat(answer) {
  const { message, finish_reason: finish } = answer.choices[0];
  const calls = (message.tool_calls ?? []).map((made) => ({ ...made.function }));
  return { id: answer.id, text: message.content, calls, finish, usage: answer.usage?.total_tokens ?? null };
}

function chunks(events) {
  let text = "";
  const calls = [];
  let finish = null;
  let usage = null;
  for (const event of events) {
    usage = event.usage?.total_tokens ?? usage;
    for (const choice of event.choices) {
      text += choice.delta.content ?? "";
      finish = choice.finish_reason ?? finish;
      for (const made of choice.delta.tool_calls ?? []) {
        if (made.id) calls.push({ name: made.function.name, arguments: "" });
        calls.at(-1).arguments += made.function.arguments ?? "";
      }
    }
  }
  return { id: events[0].id, text: text || null, calls, finish, usage };
}

function response(answer) {
  if (!answer) return { id: null };
  const made = answer.output.filter((item) => item.type === "function_call");
  const calls = made.map(({ name, arguments: given }) => ({ name, arguments: given }));
  const parts = answer.output.filter((item) => item.type === "message").flatMap((item) => item.content);
  const text = parts.map((part) => part.text).join("") || null;
  return { id: answer.id, text, calls, finish: answer.status, usage: answer.usage?.total_tokens ?? null };
}

await drive(call);
