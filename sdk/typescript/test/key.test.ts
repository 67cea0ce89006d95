import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { recorded, wireAction, wireKey } from "../src/key.js";

test("a key is the function's, in visible ASCII, and no two become one", async () => {
  assert.equal(await wireKey("charge", "invoice-1001"), "charge:invoice-1001");
  assert.equal(await wireKey("charge", "Zoë 100%"), "charge:Zo%C3%AB%20100%25");
  assert.equal(await wireKey("charge", "🎈"), "charge:%F0%9F%8E%88");
  assert.notEqual(await wireKey("charge", "a b"), await wireKey("charge", "a%20b"));
  assert.equal((await wireKey("charge", "x".repeat(248))).length, 255);
  await assert.rejects(wireKey("charge", "\ud800"), URIError);
});

test("keys are those of the vectors that all SDKs hold to", async () => {
  const vectors = JSON.parse(readFileSync(new URL("./sdk-key.json", import.meta.url), "utf8")) as {
    name: string;
    key: string;
    wire: string;
  }[];
  assert(vectors.length >= 10);
  for (const { name, key, wire } of vectors) assert.equal(await wireKey(name, key), wire);
});

test("a long key ends in its digest", async () => {
  const key = await wireKey("charge", "x".repeat(300));
  assert.equal(key.length, 255);
  assert.match(key, /^charge:x{183}~[0-9a-f]{64}$/);
  assert.notEqual(key, await wireKey("charge", `${"x".repeat(299)}y`));
});

test("a name of any script has an action", () => {
  assert.equal(wireAction("charge"), "fn:charge");
  assert.equal(wireAction("写"), "fn:%E5%86%99");
  assert.throws(() => wireAction("x".repeat(253)), TypeError);
});

test("arguments are numbered, and one plain object stands for itself", () => {
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown;
  assert.deepEqual(plain(recorded(["ann", 4900, undefined], false)), { 0: "ann", 1: 4900 });
  assert.deepEqual(plain(recorded([{ to: "ann", cc: undefined, at: new Date(0) }], false)), { to: "ann", at: "1970-01-01T00:00:00.000Z" });
  assert.deepEqual(plain(recorded([["ann"]], false)), { 0: ["ann"] });
  assert.deepEqual(plain(recorded([], false)), {});
  assert.equal(JSON.stringify(recorded([JSON.parse('{"__proto__":{"a":1}}')], false)), '{"__proto__":{"a":1}}');
});
