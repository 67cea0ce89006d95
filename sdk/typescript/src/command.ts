#!/usr/bin/env node
/** `npx semel …`: the program of the platform package. */
import { spawnSync } from "node:child_process";
import { findProgram, noProgram } from "./sidecar.js";

const program = await findProgram();
// The `semel` on PATH may be this very file.
const ended = program === "semel" ? undefined : spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (!ended || ended.error) {
  console.error(noProgram(program).message);
  process.exit(127);
}
process.exitCode = ended.status ?? 1;
