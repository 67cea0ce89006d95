// Takes the steps of a plan, and prints what came of them as one document: what steps.py says, in the other language.

import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { pathToFileURL } from "node:url";

const installed = createRequire(process.env.SEMEL_APIS + "/package.json");

/** A package from where the peers were installed. */
export const load = async (name) => import(pathToFileURL(installed.resolve(name)));

export const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

function told(error) {
  const status = error.status ?? error.statusCode ?? null;
  return { class: error.constructor.name, message: String(error.message), status, code: error.code ?? null };
}

async function take(call, plan, step) {
  if (Array.isArray(step)) return Promise.all(step.map((one) => take(call, plan, one)));
  if (step.in_turn) return takeInTurn(call, plan, step.in_turn);
  const attempts = [];
  let failure;
  for (let turn = 0; turn < (step.outer ?? 1); turn++) {
    if (turn > 0) await pause((step.pause_s ?? 0) * 1000);
    try {
      return { ok: true, value: await call(plan, step, attempts), attempts };
    } catch (error) {
      failure = error;
    }
  }
  return { ok: false, error: told(failure), attempts };
}

async function takeInTurn(call, plan, steps) {
  const results = [];
  for (const step of steps) results.push(await take(call, plan, step));
  return results;
}

export async function drive(call) {
  const plan = JSON.parse(process.argv[2]);
  const results = await takeInTurn(call, plan, plan.steps);
  process.stdout.write(JSON.stringify(results) + "\n", () => process.exit(0));
}

/** A `fetch` that keeps what the SDK saw, byte for byte. */
export const recording = (attempts) => async (url, options) => {
  let response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    attempts.push({ error: error.cause?.code ?? error.name });
    throw error;
  }
  const seen = { status: response.status, headers: Object.fromEntries(response.headers), body_sha256: digest("") };
  attempts.push(seen);
  if (!response.body) return response;
  const hash = createHash("sha256");
  const hashed = new TransformStream({
    transform(chunk, out) {
      hash.update(chunk);
      seen.body_sha256 = hash.copy().digest("hex");
      out.enqueue(chunk);
    },
  });
  return new Response(response.body.pipeThrough(hashed), response);
};

/** What both SDKs that use `fetch` are made with. */
export function options(plan, attempts) {
  const made = { baseURL: plan.base_url, fetch: recording(attempts), defaultHeaders: plan.headers ?? {} };
  made.timeout = (plan.timeout_s ?? 30) * 1000;
  if (plan.retries != null) made.maxRetries = plan.retries;
  return made;
}

export function headers(step) {
  return { ...(step.key ? { "Idempotency-Key": step.key } : {}), ...(step.headers ?? {}) };
}
