// Charges on a disk that is full at times. SEMEL_LEDGER lies on a small one, and WORLD on another.
import assert from "node:assert/strict";
import { appendFileSync, closeSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { close, InDoubt, LedgerUnavailable, once } from "../../src/index.js";

const ballast = join(dirname(process.env.SEMEL_LEDGER!), "ballast");

function fill(): void {
  const file = openSync(ballast, "w");
  assert.throws(() => {
    for (;;) writeSync(file, Buffer.alloc(1024));
  }, /ENOSPC/);
  closeSync(file);
}

const charge = once(
  function charge(customer: string, inside?: () => void) {
    appendFileSync(process.env.WORLD!, `${customer}\n`);
    inside?.();
    return "x".repeat(100_000);
  },
  { key: (customer) => customer },
);

const isRefused = (error: unknown) => error instanceof LedgerUnavailable && /Nothing was run/.test(error.message);
fill();
await assert.rejects(charge("ann"), isRefused);
rmSync(ballast);
const bob = await charge("bob"); // there is room, so there is a ledger
fill();
await assert.rejects(charge("ann"), LedgerUnavailable);
assert.equal(await charge("bob"), bob);
rmSync(ballast);
assert.equal(await charge("ann"), bob);

// It fills up while the function runs.
const first: unknown = await charge("eve", fill).catch((error: unknown) => error);
assert(first instanceof LedgerUnavailable && first.retry === "no" && /HAS run/.test(first.message), String(first));
rmSync(ballast);
await close(); // else it counts as in flight until its deadline
await assert.rejects(charge("eve"), InDoubt);
