import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { findProgram } from "../src/sidecar.js";
import { call, close, configure, effect, InDoubt, LedgerUnavailable, once, state } from "../src/index.js";
import { child, childrenOf } from "./children.js";
import { eachInItsWorld, ending } from "./world.js";

const world = eachInItsWorld();
const onLinux = { skip: process.platform !== "linux" };

test("four processes with three equal calls each run it once, and end by themselves", async () => {
  const env = { SEMEL_LEDGER: world().ledger, WORLD: world().file };
  const ended = await Promise.all(Array.from({ length: 4 }, () => child("charge", env)));
  for (const { code, stdout, stderr } of ended) {
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), Array(3).fill({ id: "ch_1" }));
  }
  assert.equal(world().acts().length, 1);
});

for (const runtime of [["bun"], ["deno", "run", "-A"]]) {
  const skip = spawnSync(runtime[0]!, ["--version"]).status !== 0;
  test(`${runtime[0]}: three equal calls run once, and the process ends by itself`, { skip }, async () => {
    const { code, stdout, stderr } = await child("charge", { SEMEL_LEDGER: world().ledger, WORLD: world().file }, runtime);
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout), Array(3).fill({ id: "ch_1" }));
    assert.equal(world().acts().length, 1);
  });
}

test("a crash between the act and its settlement is a doubt in the next process", async () => {
  const env = { SEMEL_LEDGER: world().ledger, WORLD: world().file, INVOICES: "1001" };
  assert.equal((await child("killed", { ...env, KILL: "after the act|0" })).signal, "SIGKILL");
  const { stdout, stderr } = await child("killed", env);
  assert.equal(stderr, "");
  assert.match((JSON.parse(stdout) as { doubt: string }).doubt, /^ef_/);
  assert.deepEqual(world().acts(), ["1001"]);
});

test("a sidecar that dies while a tool runs: its outcome is recorded through the next one", onLinux, async () => {
  const charge = once(async function charge(customer: string) {
    world().act(customer);
    const [sidecar] = childrenOf(process.pid);
    process.kill(sidecar!, "SIGKILL");
    while (childrenOf(process.pid).includes(sidecar!)) await new Promise((resolve) => setTimeout(resolve, 10));
    return "ch_1";
  });
  assert.equal(await charge("ann"), "ch_1");
  assert.equal(await charge("ann"), "ch_1");
  assert.equal(world().acts().length, 1);
});

test("a begin whose sidecar dies fails, runs nothing, and the next call starts another", onLinux, async () => {
  await state("warm", {});
  const [sidecar] = childrenOf(process.pid);
  process.kill(sidecar!, "SIGSTOP");
  const charge = once(function charge(customer: string) {
    world().act(customer);
    return "ch_1";
  });
  const pending = ending(charge("ann"));
  await new Promise((resolve) => setImmediate(resolve));
  process.kill(sidecar!, "SIGKILL");
  const { error } = await pending;
  assert(error instanceof LedgerUnavailable);
  assert.match(error.message, /Nothing was run\. The sidecar was ended by SIGKILL/);
  assert.deepEqual(world().acts(), []);
  assert.equal(await charge("ann"), "ch_1");
});

test("close() ends the sidecar, and the next call starts another", onLinux, async () => {
  await effect("one", {}, () => 1);
  assert.equal(childrenOf(process.pid).length, 1);
  await close();
  assert.deepEqual(childrenOf(process.pid), []);
  assert.equal(await effect("one", {}, () => 2), 1);
});

test("a missing program is named with its repair", async () => {
  await withVariable("SEMEL_BIN", "/nowhere/semel", async () => {
    configure({ ledger: world().ledger });
    const { error } = await ending(effect("one", {}, () => world().act("ran")));
    assert(error instanceof LedgerUnavailable);
    assert.match(error.message, /Nothing was run\. \/nowhere\/semel is not there.*Correct SEMEL_BIN/);
  });
  await withVariable("SEMEL_BIN", "", () =>
    withVariable("PATH", "/nowhere", async () => {
      configure({ ledger: world().ledger });
      const beside = await findProgram();
      if (beside !== "semel") return assert.match(beside, /node_modules\/@semel\//); // these tests run beside an installed one
      const { error } = await ending(effect("one", {}, () => world().act("ran")));
      assert.match(error.message, new RegExp(`npm install @semel/${process.platform}-${process.arch}`));
    }),
  );
  assert.deepEqual(world().acts(), []);
});

test("a program that cannot work says why", async () => {
  const program = (name: string, script: string) => {
    const path = join(world().directory, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  const cases: [string, string, RegExp][] = [
    ["old", "echo 'unrecognized subcommand sdk' >&2; exit 2", /ended with code 2 before it was ready.*unrecognized subcommand/],
    ["other", `echo '{"semel":"9.0.0","protocol":9}'; cat`, /speaks protocol 9/],
    ["chatty", "echo hello; cat", /speaks protocol \(none\)/],
    [
      "policy",
      `echo '{"code":"policy_invalid","detail":"semel.toml: line 3 is wrong","next_step":"Tell the user to correct it."}'`,
      /policy_invalid: Nothing was run: semel.toml: line 3 is wrong\. .*Tell the user to correct it\./,
    ],
  ];
  for (const [name, script, expected] of cases) {
    await withVariable("SEMEL_BIN", program(name, script), async () => {
      configure({ ledger: world().ledger });
      const { error } = await ending(effect("one", {}, () => world().act("ran")));
      assert(error instanceof LedgerUnavailable);
      assert.match(error.message, expected);
    });
  }
  assert.deepEqual(world().acts(), []);
});

test("a wrong policy is told by the program itself", async () => {
  const policy = join(world().directory, "semel.toml");
  writeFileSync(policy, "[[rule]]\nnonsense = true\n");
  configure({ ledger: world().ledger, policy });
  const { error } = await ending(effect("one", {}, () => world().act("ran")));
  assert(error instanceof LedgerUnavailable);
  assert.equal(error.code, "policy_invalid");
  assert.equal(error.retry, "no");
  assert.match(error.message, /unknown key `nonsense`/);
  assert.deepEqual(world().acts(), []);
});

test("a read of the policy passes, and its error is its own", async () => {
  const policy = join(world().directory, "semel.toml");
  writeFileSync(policy, '[[rule]]\nmatch = "fn:look*"\nclass = "read"\n');
  configure({ ledger: world().ledger, policy });
  const lost = new Error("socket hang up");
  const look = () => call("look_up", {}, () => Promise.reject((world().act("looked"), lost)));
  assert.equal((await ending(look())).error, lost);
  assert.equal((await ending(look())).error, lost);
  assert.equal(world().acts().length, 2);
});

test("a wrong address is refused at once", () => {
  for (const ledger of ["", "ftp://host/ledger", "http://example.com"]) assert.throws(() => configure({ ledger }), TypeError);
  assert.throws(() => configure({ server: "http://example.com" }), /no server/);
  assert.throws(() => configure({ server: "https://semel.example.com", ledger: "here.db" }), /two places/);
});

test("an adapter's call pauses, resumes, and keeps its own form of a reply", async () => {
  class Pause extends Error {}
  let asked = false;
  const charge = () =>
    call(
      "fn:charge",
      { invoice: "1001" },
      () => {
        if (!asked) {
          asked = true;
          throw new Pause("may I?");
        }
        world().act("1001");
        return new Map([["id", "ch_1"]]);
      },
      { run: "thread-1", key: "1001", callId: "call_1", pause: [Pause], dump: (map) => [...map], load: (reply) => new Map(reply) },
    );
  assert((await ending(charge())).error instanceof Pause);
  assert.deepEqual(await charge(), new Map([["id", "ch_1"]]));
  assert.deepEqual(await charge(), new Map([["id", "ch_1"]]));
  assert.equal(world().acts().length, 1);
});

test("state() tells what a call would meet, and changes nothing", async () => {
  const args = { invoice: "1001" };
  const options = { key: "1001" };
  assert.equal(await state("charge", args, options), "run");
  const { error } = await ending(
    call("charge", args, () => Promise.reject(new Error(world().act("1001") ?? "lost")), options),
  );
  assert(error instanceof InDoubt);
  assert.equal(await state("charge", args, options), "hold");
  await call("pay", args, () => world().act("paid"), options);
  assert.equal(await state("pay", args, options), "replay");
  assert.deepEqual(world().acts(), ["1001", "paid"]);
});

async function withVariable(name: string, value: string, body: () => Promise<void>): Promise<void> {
  const before = process.env[name];
  process.env[name] = value;
  try {
    await body();
  } finally {
    if (before === undefined) delete process.env[name];
    else process.env[name] = before;
  }
}

