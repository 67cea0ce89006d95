import type { AsyncLocalStorage } from "node:async_hooks";
import { SemelError } from "./errors.js";
import { builtin, environment } from "./runtime.js";

/** The attempt that is being made. */
export interface Effect {
  /** Undefined for a read, which is not recorded. */
  readonly id: string | undefined;
  readonly action: string;
  /** The same for every attempt of this effect: give it to the API that is called, if that takes one. */
  readonly idempotencyKey: string | undefined;
  readonly attempt: number;
  readonly run: string | undefined;
  /** The same was done before; its class lets it run again. */
  readonly possibleRepeat: boolean;
}

interface Scope {
  run?: string | undefined;
  effect?: Effect | undefined;
  /** Of the calls that this one is a part of. */
  identities?: string[];
}

let storage: AsyncLocalStorage<Scope> | undefined;

/** Loaded at first use: an edge runtime may lack it, and must be able to import this module all the same. */
async function scopes(): Promise<AsyncLocalStorage<Scope> | undefined> {
  if (storage) return storage;
  const hooks = await builtin<typeof import("node:async_hooks")>("node:async_hooks");
  const Storage = hooks?.AsyncLocalStorage ?? (globalThis as { AsyncLocalStorage?: typeof AsyncLocalStorage }).AsyncLocalStorage;
  // Another caller may have been here while this one waited.
  if (Storage) storage ??= new Storage<Scope>();
  return storage;
}

/** Everything that `fn` does belongs to the run `name`, however deep and however late. */
export async function run<T>(name: string, fn: () => T): Promise<Awaited<T>> {
  if (typeof name !== "string" || name.trim() === "") throw new TypeError("the name of a run must not be empty");
  const known = await scopes();
  if (!known) {
    throw new SemelError("[semel] This runtime has no AsyncLocalStorage, so run() cannot follow the calls. Use effect() with its `run` option.");
  }
  return await known.run({ ...known.getStore(), run: name }, fn);
}

/** The effect whose function is running now. */
export function current(): Effect {
  const effect = storage?.getStore()?.effect;
  if (!effect) throw new SemelError("[semel] current() is known inside of a function that semel runs, and nowhere else.");
  return effect;
}

/** The run of a call: its own word, else that of `run()`, else SEMEL_RUN_ID. */
export async function runOf(given: string | undefined): Promise<string | undefined> {
  return given ?? (await scopes())?.getStore()?.run ?? (environment("SEMEL_RUN_ID") || undefined);
}

export function identities(): string[] {
  return storage?.getStore()?.identities ?? [];
}

export async function within<T>(effect: Effect, identity: string, fn: () => T): Promise<Awaited<T>> {
  const known = await scopes();
  if (!known) return await fn();
  return await known.run({ run: effect.run, effect, identities: [...identities(), identity] }, fn);
}
