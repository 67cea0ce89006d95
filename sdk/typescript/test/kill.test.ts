import assert from "node:assert/strict";
import { test } from "node:test";
import { configure } from "../src/index.js";
import { connection } from "../src/transport.js";
import { child } from "./children.js";
import { serve, TOKEN } from "./servers.js";
import { eachInItsWorld } from "./world.js";

const world = eachInItsWorld();
const KILLS = Number(process.env.SEMEL_KILLS ?? 30);

/** Most of the time of a kill is the start of Node. */
const AT_ONCE = 2;

/** What the same call gets afterwards, and how often it has acted, where the point leaves no doubt about that. */
const POINTS: [point: string, answer?: "value" | "doubt", acts?: number][] = [
  ["before the begin", "value", 1],
  ["around the begin"],
  ["before the act", "doubt", 0],
  ["after the act", "doubt", 1],
  ["around the settlement"],
  ["after the settlement", "value", 1],
];

test(`${KILLS} kills beside a sidecar: no effect twice, none lost, every doubt visible`, async (t) => {
  await killAndAskAgain({ SEMEL_LEDGER: world().ledger }, (told) => t.diagnostic(told));
});

test(`${KILLS} kills through a server: no effect twice, none lost, every doubt visible`, async (t) => {
  // It does not see that a client on another host has died: its claims are doubts at their deadline.
  const server = await serve(world(), '[[rule]]\nmatch = "fn:charge"\ntimeout = "1s"\n');
  try {
    await killAndAskAgain({ SEMEL_SERVER: server.address, SEMEL_TOKEN: TOKEN }, (told) => t.diagnostic(told));
  } finally {
    server.kill();
  }
});

async function killAndAskAgain(env: Record<string, string>, tell: (text: string) => void): Promise<void> {
  const shared = { ...env, WORLD: world().file };
  const numbers = [...Array(KILLS).keys()];
  let next = 0, killed = 0;
  const killer = async () => {
    while (next < KILLS) {
      const number = next++;
      const [point, certain] = POINTS[number % POINTS.length]!;
      // "Around" means another moment each time: 0, 1, 2, … ms after the request may have been sent.
      const KILL = `${point}|${Math.floor(number / POINTS.length) % 8}`;
      const { signal, code, stderr } = await child("killed", { ...shared, INVOICES: `invoice-${number}`, KILL });
      if (signal === "SIGKILL") killed++;
      else assert(!certain && code === 0, `kill ${number}, ${KILL}: ${stderr}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, killer));

  const before = counts();
  const again = await child("killed", { ...shared, INVOICES: numbers.map((number) => `invoice-${number}`).join(" ") });
  assert.equal(again.code, 0, again.stderr);
  const answers = again.stdout.trim().split("\n").map((line) => JSON.parse(line) as { value?: unknown; doubt?: string });
  assert.equal(answers.length, KILLS);
  const after = counts();
  for (const number of numbers) {
    const invoice = `invoice-${number}`;
    const { value, doubt } = answers[number]!;
    const acts = after.get(invoice) ?? 0;
    const [point, answer, certainActs] = POINTS[number % POINTS.length]!;
    const told = `kill ${number}, ${point}: ${again.stdout.split("\n")[number]}, ${acts} acts`;
    if (doubt === undefined) {
      assert.deepEqual(value, { id: `ch ${invoice}` }, told);
      assert.equal(acts, 1, told);
    } else {
      assert.equal(acts, before.get(invoice) ?? 0, told); // nobody ran it a second time
      assert(acts <= 1, told);
    }
    if (answer) assert.deepEqual([doubt ? "doubt" : "value", acts], [answer, certainActs], told);
  }

  const doubts = answers.flatMap(({ doubt }) => doubt ?? []);
  const effects = await allEffects();
  const inState = (state: string) => effects.filter((effect) => effect.state === state).map(({ effect_id }) => effect_id);
  assert.deepEqual(inState("in_doubt").sort(), doubts.sort());
  assert.equal(inState("applied").length, KILLS - doubts.length);
  assert.equal(effects.length, KILLS);
  tell(`${killed} kills, ${after.size} keys acted, ${doubts.length} doubts`);
}

function counts(): Map<string, number> {
  const found = new Map<string, number>();
  for (const act of world().acts()) found.set(act, (found.get(act) ?? 0) + 1);
  return found;
}

async function allEffects(): Promise<{ effect_id: string; state: string }[]> {
  configure({ ledger: world().ledger });
  const found: { effect_id: string; state: string }[] = [];
  for (let cursor: unknown = ""; cursor !== null; ) {
    const { body } = await connection().request("GET", `/effects?limit=200${cursor ? `&cursor=${String(cursor)}` : ""}`);
    found.push(...(body.items as typeof found));
    cursor = body.next;
  }
  return found;
}
