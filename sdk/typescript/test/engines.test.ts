import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { close, configure, InDoubt, LedgerUnavailable, once } from "../src/index.js";
import { child } from "./children.js";
import { ENGINES, hasOpenssl, makeCertificate, serve, TOKEN } from "./servers.js";
import { eachInItsWorld, ending } from "./world.js";

const world = eachInItsWorld();
const PROCESSES = 4;

for (const [engine, start] of Object.entries(ENGINES)) {
  const skip = !start && `${engine} is not installed`;
  test(`a ledger on ${engine}: the same answers, in this process and in others`, { skip }, async () => {
    const directory = mkdtempSync(join(tmpdir(), `semel-${engine}-`));
    const server = await start!(directory);
    try {
      const ledger = server.address + "tests";
      configure({ ledger });
      await tryAll({ SEMEL_LEDGER: ledger });
    } finally {
      await close();
      server.kill();
      rmSync(directory, { recursive: true, force: true, maxRetries: 10 });
    }
  });
}

test("a ledger behind https with a certificate of its own needs SEMEL_SERVER_CA", { skip: !hasOpenssl }, async () => {
  const tls = makeCertificate(world().directory);
  const server = await serve(world(), '[[rule]]\nmatch = "fn:charge"\ntimeout = "1s"\n', tls);
  configure({ ledger: server.address, token: TOKEN });
  const early = once(function early() {
    world().act("early");
  });
  const { error } = await ending(early());
  assert(error instanceof LedgerUnavailable);
  assert.match(error.message, /Nothing was run.*certificate/);
  process.env.SEMEL_SERVER_CA = tls.certificate;
  try {
    await tryAll({ SEMEL_LEDGER: server.address, SEMEL_TOKEN: TOKEN });
  } finally {
    delete process.env.SEMEL_SERVER_CA;
    server.kill();
  }
});

async function tryAll(env: Record<string, string>): Promise<void> {
  const shared = { ...env, WORLD: world().file };
  // Twins in four processes, three calls in each.
  const ended = await Promise.all(Array.from({ length: PROCESSES }, () => child("charge", shared)));
  for (const { code, stdout, stderr } of ended) {
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), Array(3).fill({ id: "ch_1" }));
  }
  // A replay, here.
  const charge = once(function charge(customer: string) {
    world().act(customer);
    return { id: "another" };
  });
  assert.deepEqual(await charge("ann"), { id: "ch_1" });
  // A lost answer.
  const lost = once(function lost(customer: string) {
    world().act(customer);
    throw new Error("socket hang up");
  });
  for (let time = 0; time < 2; time++) assert((await ending(lost("bob"))).error instanceof InDoubt);
  // A process that was killed between its act and the settlement.
  assert.equal((await child("killed", { ...shared, INVOICES: "1001", KILL: "after the act|0" })).signal, "SIGKILL");
  const again = await child("killed", { ...shared, INVOICES: "1001" });
  assert.match((JSON.parse(again.stdout) as { doubt: string }).doubt, /^ef_/, again.stderr);
  assert.deepEqual(world().acts(), ["ann", "bob", "1001"]);
}
