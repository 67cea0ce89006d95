import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export interface Ended {
  code: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
}

/** Runs a script of `children/` in a process of its own, to its end. */
export function child(script: string, env: Record<string, string>, [program, ...options]: string[] = [process.execPath]): Promise<Ended> {
  const path = fileURLToPath(new URL(`./children/${script}.js`, import.meta.url));
  const running = spawn(program!, [...options, path], { env: { ...process.env, ...env } });
  const ended: Ended = { code: null, signal: null, stdout: "", stderr: "" };
  running.stdout.setEncoding("utf8").on("data", (text: string) => (ended.stdout += text));
  running.stderr.setEncoding("utf8").on("data", (text: string) => (ended.stderr += text));
  return new Promise((resolve, reject) => {
    running.on("error", reject);
    running.on("close", (code, signal) => resolve({ ...ended, code, signal }));
  });
}

/** The processes that this one has started (Linux). */
export function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}
