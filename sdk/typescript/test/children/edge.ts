// A runtime without modules of Node and without `process`: only fetch, crypto and timers. Prints what works there.
import { register } from "node:module";

const { SERVER: server, TOKEN: token } = process.env as Record<string, string>;
const { log } = console;
const denying = `export async function resolve(name, context, next) {
  if (name.startsWith("node:")) throw new Error(name + " is not here");
  return next(name, context);
}`;
register(`data:text/javascript,${encodeURIComponent(denying)}`);
const kept = globalThis.process;
Reflect.deleteProperty(globalThis, "process");

const { configure, effect, run } = await import("../../src/index.js");
configure({ server, token });
let acts = 0;
const act = () => effect("welcome", { user: "edge" }, ({ id, run: of }) => ({ acts: ++acts, of, known: id !== undefined }), { run: "order-42" });
const told = { first: await act(), again: await act(), acts, run: await run("r", () => 1).catch((error: Error) => error.message) };
const sidecar = await (configure({ ledger: "here.db" }), act().catch((error: Error) => error.message));
log(JSON.stringify({ ...told, sidecar }));
globalThis.process = kept;
