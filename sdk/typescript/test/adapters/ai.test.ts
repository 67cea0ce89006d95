import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelMessage } from "ai";
import type { MockLanguageModelV4 } from "ai/test";
import * as guarded from "../../examples/ai.js";
import { resolve } from "../../src/index.js";
import { eachInItsWorld } from "../world.js";
import { charge, crash, CRASHING, effectIdIn, type Ending, withoutSemel } from "./failures.js";
import { scripted } from "./model.js";

function turn(file: string, ending: Ending, model: MockLanguageModelV4, messages: ModelMessage[], example = guarded) {
  return example.turn(model, messages, async (customer) => charge(file, customer, ending));
}

const unguarded = () => withoutSemel<typeof guarded>("ai", "(tools) => ({ tools })");

const ASKED: ModelMessage[] = [{ role: "user", content: "Charge Ann." }];

if (CRASHING) {
  await turn(CRASHING, "crash", scripted(1), ASKED, process.env.UNGUARDED ? await unguarded() : guarded);
} else {
  const world = eachInItsWorld();

  test("AI SDK: the answer is lost, the model calls again, a person decides, and the record answers", async () => {
    const first = await turn(world().file, "lose", scripted(1, 1), ASKED);
    const told = JSON.stringify(first.steps[0]!.content.find(({ type }) => type === "tool-error"), (_, value: unknown) =>
      value instanceof Error ? value.message : value,
    );
    assert.match(told, /may have been carried out.*Safe to retry: no/);
    assert.doesNotMatch(told, /try again/i);
    const request = first.content.find((part) => part.type === "tool-approval-request");
    assert(request, "the second call waits for a person");

    await resolve(effectIdIn(told), "applied", "seen in the dashboard", { id: "ch_1" });
    const answered = await turn(world().file, "lose", scripted("Done."), [
      ...ASKED,
      ...first.responseMessages,
      { role: "tool", content: [{ type: "tool-approval-response", approvalId: request.approvalId, approved: true }] },
    ]);
    assert.equal(answered.text, "Done.");
    assert.match(JSON.stringify(answered.responseMessages), /"id":"ch_1"/);
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("AI SDK: equal calls in one step run once", async () => {
    const { steps } = await turn(world().file, "answer", scripted(3, "Done."), ASKED);
    assert.deepEqual(steps[0]!.toolResults.map(({ output }) => output), Array(3).fill({ id: "ch_1" }));
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("AI SDK: after a crash the same call waits for a person", async () => {
    await crash(import.meta.url, world());
    const { content } = await turn(world().file, "answer", scripted(1, "Done."), ASKED);
    assert(content.some(({ type }) => type === "tool-approval-request"));
    assert.deepEqual(world().acts(), ["ann"]);
  });

  test("AI SDK without semel: the model repeats a lost answer, equal calls all run, a crashed call runs again", async () => {
    const example = await unguarded();
    await turn(world().file, "lose", scripted(1, 1, "Done."), ASKED, example);
    assert.equal(world().acts().length, 2);
    await turn(world().file, "answer", scripted(3, "Done."), ASKED, example);
    assert.equal(world().acts().length, 2 + 3);
    await crash(import.meta.url, world(), { UNGUARDED: "yes" });
    await turn(world().file, "answer", scripted(1, "Done."), ASKED, example);
    assert.equal(world().acts().length, 2 + 3 + 2);
  });
}
