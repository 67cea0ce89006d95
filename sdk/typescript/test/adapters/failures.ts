import { spawn } from "node:child_process";
import { once as event } from "node:events";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { World } from "../world.js";

/** What the tool does after it has acted: answer, lose its answer, or take the process with it. */
export type Ending = "answer" | "lose" | "crash";

/** The tool of all adapter tests. It acts first, and then ends as wanted. */
export function charge(file: string, customer: string, ending: Ending): { id: string } {
  appendFileSync(file, `${customer}\n`);
  if (ending === "crash") process.kill(process.pid, "SIGKILL");
  if (ending === "lose") throw new Error("socket hang up");
  return { id: "ch_1" };
}

/** Set in the process that is to crash: the test's file runs its scenario instead of its tests. */
export const CRASHING = process.env.CRASH_IN;

/** Runs the file of a test in a process that its tool kills after it has acted. */
export async function crash(url: string, world: World, more: { UNGUARDED?: "yes" } = {}): Promise<void> {
  const env = { ...process.env, CRASH_IN: world.file, SEMEL_LEDGER: world.ledger, ...more };
  const child = spawn(process.execPath, [fileURLToPath(url)], { env, stdio: ["ignore", "ignore", "pipe"] });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const [, signal] = (await event(child, "close")) as [number | null, string | null];
  if (signal !== "SIGKILL") throw new Error(`the process did not crash: ${stderr}`);
}

/** The module of an example, with this in place of semel's guard: the same program as it would be without semel. */
export async function withoutSemel<MODULE>(example: string, guard: string): Promise<MODULE> {
  const directory = new URL("../../examples/", import.meta.url);
  const text = readFileSync(new URL(`${example}.js`, directory), "utf8");
  const without = text.replace(/^import \{ guard \} from "semel\/.*";$/m, `const guard = ${guard};`);
  if (without === text) throw new Error(`no guard is imported in ${example}`);
  const there = new URL(`${example}.unguarded.js`, directory);
  writeFileSync(there, without);
  return (await import(there.href)) as MODULE;
}

export function effectIdIn(text: string): string {
  const found = /ef_[0-9A-Z]+/.exec(text);
  if (!found) throw new Error(`no effect is named in: ${text}`);
  return found[0];
}
