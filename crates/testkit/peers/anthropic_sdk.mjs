// The official Anthropic client, doing what a plan says: the same steps as anthropic_sdk.py.

import { drive, headers, load, options } from "./steps.mjs";

const { default: Anthropic } = await load("@anthropic-ai/sdk");

async function call(plan, step, attempts) {
  const client = new Anthropic({ apiKey: plan.api_key ?? "sk-ant-test", ...options(plan, attempts) });
  const args = { model: "m", max_tokens: 100, ...step.args };
  const more = { headers: headers(step) };
  if (!step.stream) return message(await client.messages.create(args, more));
  const types = [];
  const stream = client.messages.stream(args, more);
  for await (const event of stream) {
    types.push(event.type);
    if (types.length === step.abandon_after) {
      stream.abort();
      return { abandoned: true, types };
    }
  }
  return { ...message(await stream.finalMessage()), types };
}

function message(answer) {
  const text = answer.content.filter((block) => block.type === "text").map((block) => block.text).join("") || null;
  const made = answer.content.filter((block) => block.type === "tool_use");
  const calls = made.map(({ name, input }) => ({ name, arguments: input }));
  const usage = answer.usage.input_tokens + answer.usage.output_tokens;
  return { id: answer.id, text, calls, finish: answer.stop_reason, usage };
}

await drive(call);
