import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentInputItem, type Model, type ModelResponse, Runner, setTracingDisabled, Usage } from "@openai/agents";
import * as guarded from "../../examples/openai-agents.js";
import { resolve } from "../../src/index.js";
import { eachInItsWorld } from "../world.js";
import { charge, crash, CRASHING, effectIdIn, type Ending, withoutSemel } from "./failures.js";

setTracingDisabled(true);

/** A model that says these things, one after the other: tool calls for a number, text for a text. */
function scripted(...steps: (number | string)[]): Model {
  let calls = 0;
  return {
    async getResponse(): Promise<ModelResponse> {
      const step = steps.shift() ?? "…";
      const output: ModelResponse["output"] =
        typeof step === "string"
          ? [{ type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text: step }] }]
          : Array.from({ length: step }, () => ({
              type: "function_call" as const,
              callId: `call_${++calls}`,
              name: "charge",
              arguments: '{"customer":"ann"}',
            }));
      return { usage: new Usage(), output };
    },
    getStreamedResponse() {
      throw new Error("not scripted");
    },
  };
}

function agentOf(file: string, ending: Ending, model: Model, example = guarded) {
  return example.agentOf(model, async (customer) => charge(file, customer, ending));
}

const unguarded = () => withoutSemel<typeof guarded>("openai-agents", "(definition) => definition");
const runner = new Runner({ tracingDisabled: true });
const outputs = (items: AgentInputItem[]) => items.filter(({ type }) => type === "function_call_result").map((item) => JSON.stringify(item));

if (CRASHING) {
  const example = process.env.UNGUARDED ? await unguarded() : guarded;
  await runner.run(agentOf(CRASHING, "crash", scripted(1), example), "Charge Ann.");
} else {
  const world = eachInItsWorld();

  test("OpenAI Agents: the answer is lost, the model calls again, a person decides, and the record answers", async () => {
    const agent = agentOf(world().file, "lose", scripted(1, 1, "Done."));
    const first = await runner.run(agent, "Charge Ann.");
    const [told] = outputs(first.history);
    assert.match(told!, /may have been carried out.*Safe to retry: no/);
    assert.doesNotMatch(told!, /try again/i);
    assert.equal(first.interruptions.length, 1);

    await resolve(effectIdIn(told!), "applied", "seen in the dashboard", { id: "ch_1" });
    first.state.approve(first.interruptions[0]!);
    const answered = await runner.run(agent, first.state);
    assert.equal(answered.finalOutput, "Done.");
    assert.match(outputs(answered.history).at(-1)!, /ch_1/);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("OpenAI Agents: equal calls in one step run once", async () => {
    const { history, finalOutput } = await runner.run(agentOf(world().file, "answer", scripted(3, "Done.")), "Charge Ann.");
    assert.equal(finalOutput, "Done.");
    assert.equal(outputs(history).filter((output) => output.includes("ch_1")).length, 3);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("OpenAI Agents: after a crash the same call waits for a person", async () => {
    await crash(import.meta.url, world());
    const { interruptions } = await runner.run(agentOf(world().file, "answer", scripted(1, "Done.")), "Charge Ann.");
    assert.equal(interruptions.length, 1);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("OpenAI Agents without semel: the model repeats a lost answer, equal calls all run, a crashed call runs again", async () => {
    const example = await unguarded();
    const { history } = await runner.run(agentOf(world().file, "lose", scripted(1, 1, "Done."), example), "Charge Ann.");
    assert.deepEqual(outputs(history).map((output) => /try again/.test(output)), [true, true]); // the framework's words
    assert.equal(world().acts().length, 2);
    await runner.run(agentOf(world().file, "answer", scripted(3, "Done."), example), "Charge Ann.");
    assert.equal(world().acts().length, 2 + 3);
    await crash(import.meta.url, world(), { UNGUARDED: "yes" });
    await runner.run(agentOf(world().file, "answer", scripted(1, "Done."), example), "Charge Ann.");
    assert.equal(world().acts().length, 2 + 3 + 2);
  });
}
