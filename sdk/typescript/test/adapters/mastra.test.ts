import assert from "node:assert/strict";
import { test } from "node:test";
import { Agent } from "@mastra/core/agent";
import type { MastraModelConfig } from "@mastra/core/llm";
import { Mastra } from "@mastra/core/mastra";
import { MASTRA_THREAD_ID_KEY, RequestContext } from "@mastra/core/request-context";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { z } from "zod";
import * as guarded from "../../examples/mastra.js";
import { guard } from "../../src/adapters/mastra.js";
import { resolve } from "../../src/index.js";
import { eachInItsWorld } from "../world.js";
import { charge, crash, CRASHING, effectIdIn, type Ending, withoutSemel } from "./failures.js";
import { scripted } from "./model.js";

function agentOf(file: string, ending: Ending, model: ReturnType<typeof scripted>, example = guarded): Agent {
  // Mastra's type has a generate() that answers like stream(), which no model of the AI SDK has.
  const agent = example.agentOf(model as unknown as MastraModelConfig, async (customer) => charge(file, customer, ending));
  new Mastra({ agents: { billing: agent }, storage: new InMemoryStore(), logger: false });
  return agent;
}

const unguarded = () => withoutSemel<typeof guarded>("mastra", "(tools) => tools");

function inThread(): { requestContext: RequestContext } {
  const requestContext = new RequestContext();
  requestContext.set(MASTRA_THREAD_ID_KEY, "thread-1");
  return { requestContext };
}

if (CRASHING) {
  const example = process.env.UNGUARDED ? await unguarded() : guarded;
  await agentOf(CRASHING, "crash", scripted(1), example).generate("Charge Ann.", inThread());
} else {
  const world = eachInItsWorld();

  test("Mastra: the answer is lost, the model calls again, a person decides, and the record answers", async () => {
    const agent = agentOf(world().file, "lose", scripted(1, 1, "Done."));
    const first = await agent.generate("Charge Ann.", inThread());
    assert.equal(first.finishReason, "suspended");
    const told = JSON.stringify(first.messages);
    assert.match(told, /may have been carried out.*Safe to retry: no/);
    assert.doesNotMatch(told, /try again/i);

    await resolve(effectIdIn(told), "applied", "seen in the dashboard", { id: "ch_1" });
    const { toolCallId } = first.suspendPayload as { toolCallId: string };
    const answered = await agent.approveToolCallGenerate({ runId: first.runId!, toolCallId, ...inThread() });
    assert.equal(answered.text, "Done.");
    assert.match(JSON.stringify(answered.messages), /"id":"ch_1"/);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("Mastra: equal calls in one step run once", async () => {
    const { toolResults } = await agentOf(world().file, "answer", scripted(3, "Done.")).generate("Charge Ann.", inThread());
    assert.equal(toolResults.length, 3);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("Mastra: after a crash the same call waits for a person", async () => {
    await crash(import.meta.url, world());
    const { finishReason } = await agentOf(world().file, "answer", scripted(1, "Done.")).generate("Charge Ann.", inThread());
    assert.equal(finishReason, "suspended");
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("Mastra: a pause of the tool itself is no answer", async () => {
    const charging = createTool({
      id: "charge",
      description: "Charges a customer.",
      inputSchema: z.object({ customer: z.string() }),
      suspendSchema: z.object({ why: z.string() }),
      resumeSchema: z.object({ yes: z.boolean() }),
      execute: async ({ customer }, context) => {
        if (!context.agent?.resumeData) return context.agent?.suspend({ why: "May I?" });
        return charge(world().file, customer, "answer");
      },
    });
    const model = scripted(1, 1, "Done.") as unknown as MastraModelConfig;
    const agent = new Agent({ id: "billing", name: "billing", instructions: "Charge.", model, tools: guard({ charge: charging }) });
    new Mastra({ agents: { billing: agent }, storage: new InMemoryStore(), logger: false });
    const { finishReason, runId, suspendPayload } = await agent.generate("Charge Ann.", inThread());
    assert.deepEqual([finishReason, world().acts()], ["suspended", []]);
    const { toolCallId } = suspendPayload as { toolCallId: string };
    const answered = await agent.resumeGenerate({ yes: true }, { runId: runId!, toolCallId, ...inThread() });
    assert.equal(answered.text, "Done.");
    assert.match(JSON.stringify(answered.messages), /"id":"ch_1"/);
    assert.deepEqual(world().acts(), ["ann"]); // the model has called once more
  });

  test("Mastra without semel: the model repeats a lost answer, equal calls all run, a crashed call runs again", async () => {
    const example = await unguarded();
    await agentOf(world().file, "lose", scripted(1, 1, "Done."), example).generate("Charge Ann.", inThread());
    assert.equal(world().acts().length, 2);
    await agentOf(world().file, "answer", scripted(3, "Done."), example).generate("Charge Ann.", inThread());
    assert.equal(world().acts().length, 2 + 3);
    await crash(import.meta.url, world(), { UNGUARDED: "yes" });
    await agentOf(world().file, "answer", scripted(1, "Done."), example).generate("Charge Ann.", inThread());
    assert.equal(world().acts().length, 2 + 3 + 2);
  });
}
