// Charges once and prints why it could not. SEMEL_LEDGER and WORLD come from the parent.
import { appendFileSync } from "node:fs";
import { LedgerUnavailable, once } from "../../src/index.js";

const charge = once(function charge(customer: string) {
  appendFileSync(process.env.WORLD!, `${customer}\n`);
});

try {
  await charge("ann");
  console.log("it ran");
} catch (error) {
  if (!(error instanceof LedgerUnavailable || error instanceof TypeError)) throw error;
  console.log(error.name, (error as LedgerUnavailable).code, error.message);
}
