import assert from "node:assert/strict";
import { test } from "node:test";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { Command, isGraphBubbleUp, MemorySaver } from "@langchain/langgraph";
import { createAgent, tool, toolRetryMiddleware } from "langchain";
import { z } from "zod";
import * as guarded from "../../examples/langchain.js";
import { guard, type Question, type Ruling } from "../../src/adapters/langchain.js";
import { eachInItsWorld } from "../world.js";
import { charge, crash, CRASHING, type Ending, withoutSemel } from "./failures.js";

/** A model that says these things, one after the other: tool calls for a number, text for a text. */
class Scripted extends BaseChatModel {
  #calls = 0;
  constructor(readonly steps: (number | string)[]) {
    super({});
  }
  _llmType(): string {
    return "scripted";
  }
  override bindTools(): this {
    return this;
  }
  async _generate() {
    const step = this.steps.shift() ?? "…";
    const tool_calls = Array.from({ length: typeof step === "number" ? step : 0 }, () => ({
      type: "tool_call" as const,
      id: `call_${++this.#calls}`,
      name: "charge",
      args: { customer: "ann" },
    }));
    const message = new AIMessage({ content: typeof step === "string" ? step : "", tool_calls });
    return { generations: [{ text: message.text, message }] };
  }
}

function agentOf(file: string, ending: Ending, steps: (number | string)[], example = guarded) {
  return example.agentOf(new Scripted(steps), async (customer) => charge(file, customer, ending));
}

const unguarded = () => withoutSemel<typeof guarded>("langchain", "() => ({ name: 'none' })");
const THREAD = { configurable: { thread_id: "thread-1" } };
const ASKED = { messages: [{ role: "user", content: "Charge Ann." }] };
type Paused = { __interrupt__?: { value: Question }[] };

if (CRASHING) {
  const example = process.env.UNGUARDED ? await unguarded() : guarded;
  await agentOf(CRASHING, "crash", [1], example).invoke(ASKED, THREAD);
} else {
  const world = eachInItsWorld();

  test("LangChain: the answer is lost, the graph is interrupted, a person decides, and the record answers", async () => {
    const agent = agentOf(world().file, "lose", [1, "Done."]);
    const paused = (await agent.invoke(ASKED, THREAD)) as Paused;
    const question = paused.__interrupt__![0]!.value;
    assert.match(question.message, /may have been carried out.*Safe to retry: no/);
    assert.match(question.effect_id, /^ef_/);

    const resume: Ruling = { ...question, verdict: "applied", reason: "seen in the dashboard", reply: { id: "ch_1" } };
    const { messages } = await agent.invoke(new Command({ resume }), THREAD);
    assert.deepEqual(messages.map(({ text }) => text), ["Charge Ann.", "", '{"id":"ch_1"}', "Done."]);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("LangChain: an old answer does not decide about a later attempt", async () => {
    const agent = agentOf(world().file, "lose", [1, "Done."]);
    const asked = async (input: typeof ASKED | Command) =>
      ((await agent.invoke(input, THREAD)) as Paused).__interrupt__![0]!.value;
    const first = await asked(ASKED);
    const resume: Ruling = { ...first, verdict: "not_applied", reason: "not in the dashboard" };
    const second = await asked(new Command({ resume }));
    assert.deepEqual([second.attempt, world().acts().length], [2, 2]);
    // The same answer again, and the one that the framework replays, are about the first attempt.
    assert.equal((await asked(new Command({ resume }))).attempt, 2);
    assert.equal(world().acts().length, 2);
  });

  test("LangChain: the framework's own retries run it once", async () => {
    const { file } = world();
    const tools = [
      tool(async () => charge(file, "ann", "lose"), { name: "charge", description: "Charges a customer.", schema: z.object({ customer: z.string() }) }),
    ];
    const checkpointer = new MemorySaver();
    // Unless told otherwise, it takes an interrupt for an error of the tool.
    const careful = toolRetryMiddleware({ initialDelayMs: 0, retryOn: (error) => !isGraphBubbleUp(error), onFailure: "error" });
    const agent = createAgent({ model: new Scripted([1, "Done."]), tools, checkpointer, middleware: [careful, guard()] });
    assert.equal(((await agent.invoke(ASKED, THREAD)) as Paused).__interrupt__!.length, 1);
    const careless = toolRetryMiddleware({ initialDelayMs: 0 });
    await createAgent({ model: new Scripted([1, "Done."]), tools, checkpointer: new MemorySaver(), middleware: [careless, guard()] }).invoke(ASKED, THREAD);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("LangChain: equal calls in one step run once, and each gets its own message", async () => {
    const { messages } = await agentOf(world().file, "answer", [3, "Done."]).invoke(ASKED, THREAD);
    const answers = messages.filter(({ type }) => type === "tool") as unknown as { text: string; tool_call_id: string }[];
    assert.deepEqual(answers.map(({ text }) => text), Array(3).fill('{"id":"ch_1"}'));
    assert.deepEqual(answers.map(({ tool_call_id }) => tool_call_id).sort(), ["call_1", "call_2", "call_3"]);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("LangChain: after a crash the same call interrupts the graph", async () => {
    await crash(import.meta.url, world());
    const paused = (await agentOf(world().file, "answer", [1, "Done."]).invoke(ASKED, THREAD)) as Paused;
    assert.equal(paused.__interrupt__!.length, 1);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("LangChain without semel: the model repeats a lost answer, equal calls all run, a crashed call runs again", async () => {
    const example = await unguarded();
    await agentOf(world().file, "lose", [1, 1, "Done."], example).invoke(ASKED, THREAD);
    assert.equal(world().acts().length, 2);
    await agentOf(world().file, "answer", [3, "Done."], example).invoke(ASKED, THREAD);
    assert.equal(world().acts().length, 2 + 3);
    await crash(import.meta.url, world(), { UNGUARDED: "yes" });
    await agentOf(world().file, "answer", [1, "Done."], example).invoke(ASKED, THREAD);
    assert.equal(world().acts().length, 2 + 3 + 2);
  });
}
