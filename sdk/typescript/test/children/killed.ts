// Charges an invoice, and ends itself with SIGKILL at the point that KILL names. Without KILL it only charges, all of
// INVOICES. Prints how each call ended.
import { appendFileSync } from "node:fs";
import { InDoubt, once, state } from "../../src/index.js";

const [wanted, delayMs] = (process.env.KILL ?? "never|0").split("|") as [string, string];

function die(here: string): void {
  if (wanted === here) process.kill(process.pid, "SIGKILL");
}

function dieSoon(here: string): void {
  if (wanted === here) setTimeout(() => process.kill(process.pid, "SIGKILL"), Number(delayMs));
}

const charge = once(
  async function charge(invoice: string) {
    die("before the act");
    appendFileSync(process.env.WORLD!, `${invoice}\n`);
    die("after the act");
    dieSoon("around the settlement");
    return { id: `ch ${invoice}` };
  },
  { key: (invoice) => invoice },
);

// The sidecar runs when the point comes, so that the time to kill is not spent on its start.
await state("warm", {});
for (const invoice of process.env.INVOICES!.split(" ")) {
  die("before the begin");
  dieSoon("around the begin");
  try {
    const value = await charge(invoice);
    die("after the settlement");
    console.log(JSON.stringify({ value }));
  } catch (error) {
    if (!(error instanceof InDoubt)) throw error;
    console.log(JSON.stringify({ doubt: error.effect_id }));
  }
}
