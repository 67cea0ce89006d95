// Makes three equal calls at once and prints their answers. SEMEL_LEDGER and WORLD come from the parent.
import { appendFileSync } from "node:fs";
import { once } from "../../src/index.js";

const charge = once(async function charge(customer: string) {
  appendFileSync(process.env.WORLD!, `${customer}\n`);
  await new Promise((resolve) => setTimeout(resolve, 50));
  return { id: "ch_1" };
});

console.log(JSON.stringify(await Promise.all([charge("ann"), charge("ann"), charge("ann")])));
