// Charges once, and ends itself with SIGKILL at the point that KILL names. Prints how the call ended.
import { appendFileSync } from "node:fs";
import { once } from "../../src/index.js";

const [wanted, delayMs] = (process.env.KILL ?? "never|0").split("|") as [string, string];
let point = "never";

function die(here: string): void {
  if (point === here) process.kill(process.pid, "SIGKILL");
}

function dieSoon(here: string): void {
  if (point === here) setTimeout(() => process.kill(process.pid, "SIGKILL"), Number(delayMs));
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
await charge("warm-up");
point = wanted;
const invoice = process.env.INVOICE!;
die("before the begin");
dieSoon("around the begin");
try {
  const value = await charge(invoice);
  die("after the settlement");
  console.log(JSON.stringify({ value }));
} catch (error) {
  const { name, effect_id } = error as { name: string; effect_id?: string };
  console.log(JSON.stringify({ error: name, effect_id }));
}
