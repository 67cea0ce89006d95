import { type Errors, foresee, type Foreseen, perform } from "./effect.js";
import { type Answer, SemelError } from "./errors.js";
import { recorded } from "./key.js";

export interface StateOptions {
  run?: string | undefined;
  key?: string | undefined;
}

export interface CallOptions<T> extends StateOptions {
  /** The model's id of the call. */
  callId?: string | undefined;
  /** The errors by which the framework pauses inside of a tool. */
  pause?: Errors | undefined;
  refused?: Errors | undefined;
  /** A value as JSON for the record, and back. */
  dump?: (value: T) => unknown;
  load?: (reply: any, answer: Answer) => T;
}

/** For adapters: a tool call of a framework. The policy and the defaults decide whether it is guarded. */
export async function call<T>(action: string, args: unknown, fn: () => T | PromiseLike<T>, options: CallOptions<T> = {}): Promise<T> {
  const { run, key, callId, ...means } = options;
  return perform({ ...named(action, args), run, key, callId }, { act: fn, ...means });
}

/** For adapters: what this call would meet. On `hold` it is time for the framework's own pause. */
export async function state(action: string, args: unknown, options: StateOptions = {}): Promise<Foreseen> {
  return foresee({ ...named(action, args), ...options });
}

/** For a model: null would tell it nothing, so a reply that is not known is semel's word on why. */
export function replyOrWords(reply: unknown, answer: Answer): any {
  return reply ?? `[semel] ${answer.effect_id}: ${answer.reason ?? "done before; it was not run again"}.`;
}

/** Somebody may have decided meanwhile, or another of several equal calls has. The next call says what. */
export async function unlessDecided(ruling: Promise<unknown>): Promise<void> {
  await ruling.catch((error: unknown) => {
    if (!(error instanceof SemelError && error.answer["status"] === 409)) throw error;
  });
}

function named(action: string, args: unknown) {
  return { name: action.replace(/^fn:/, ""), arguments: recorded(args === undefined ? [] : [args], false) };
}
