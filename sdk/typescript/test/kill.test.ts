import assert from "node:assert/strict";
import { test } from "node:test";
import { child } from "./children.js";
import { eachInItsWorld } from "./world.js";

const world = eachInItsWorld();
const KILLS = Number(process.env.SEMEL_KILLS ?? 30);

const POINTS = [
  "before the begin",
  "around the begin",
  "before the act",
  "after the act",
  "around the settlement",
  "after the settlement",
];

test(`${KILLS} kills: no effect twice, none lost, every doubt visible`, async () => {
  const env = { SEMEL_LEDGER: world().ledger, WORLD: world().file };
  for (let kill = 0; kill < KILLS; kill++) {
    const point = POINTS[kill % POINTS.length]!;
    // "Around" means another moment each time: 0, 1, 2, … ms after the request may have been sent.
    const delayMs = Math.floor(kill / POINTS.length) % 8;
    const told = `${point}, ${delayMs} ms (kill ${kill})`;
    const invoice = `invoice-${kill}`;
    const first = await child("killed", { ...env, INVOICE: invoice, KILL: `${point}|${delayMs}` });
    const again = await child("killed", { ...env, INVOICE: invoice });
    assert.equal(again.code, 0, `${told}: ${again.stderr}`);
    const { value, error, effect_id } = JSON.parse(again.stdout) as { value?: unknown; error?: string; effect_id?: string };
    const acts = world().acts().filter((act) => act === invoice).length;

    if (error === undefined) {
      assert.deepEqual(value, { id: `ch ${invoice}` }, told);
      assert.equal(acts, 1, told);
    } else {
      assert.equal(error, "InDoubt", told);
      assert.match(effect_id!, /^ef_/, told);
      assert(acts <= 1, told);
    }
    const certain: Record<string, boolean> = {
      "before the begin": error === undefined,
      "before the act": error === "InDoubt" && acts === 0,
      "after the act": error === "InDoubt" && acts === 1,
      "after the settlement": error === undefined,
    };
    assert(certain[point] ?? true, `${told}: ${error ?? "done"}, ${acts} acts`);
    if (!point.startsWith("around")) assert.equal(first.signal, "SIGKILL", told);
  }
  assert.equal(world().acts().filter((act) => act === "warm-up").length, 1);
});

