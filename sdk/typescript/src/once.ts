import { type Errors, type Intent, perform } from "./effect.js";
import { jsonObject, recorded, span, wireAction, type JsonObject } from "./key.js";

export interface OnceOptions<A extends unknown[]> {
  /** Names the effect for ever: other arguments under the same key are refused. */
  key?: (...args: A) => string;
  /** The arguments that make two calls the same, within the run. */
  by?: (...args: A) => Record<string, unknown>;
  /** Errors that prove that nothing happened, beside `Refused`. */
  refused?: Errors;
  /** The tool honours the idempotency key for so long: "24h", or seconds. */
  keyedFor?: string | number;
  /** Needed for a function without a name of its own. */
  name?: string;
}

export interface ProbeOptions {
  /** How long after a call its effect may still become visible: "30s", or seconds. */
  quiet?: string | number;
}

export type Guarded<A extends unknown[], R> = (...args: A) => Promise<Awaited<R>>;

export interface Once<A extends unknown[], R> extends Guarded<A, R> {
  /** The same function, run once more on purpose. The same reason again is the same repetition. */
  again(why: string): Guarded<A, R>;
  /**
   * How to find out what became of a lost answer. `look` gets the same arguments and returns the reply if it
   * happened, null or undefined if it did not, and throws if it cannot know.
   */
  probe(look: (...args: A) => R | Awaited<R> | null | undefined | Promise<Awaited<R> | null | undefined>, options?: ProbeOptions): Once<A, R>;
}

/** Makes a function that acts at most once for the same arguments, or the same key. */
export function once<F extends (...args: any[]) => unknown>(fn: F, options: OnceOptions<Parameters<F>> = {}): Once<Parameters<F>, ReturnType<F>> {
  type A = Parameters<F>;
  type R = ReturnType<F>;
  const name = options.name ?? fn.name;
  if (!name) throw new TypeError("once() needs a name for a function that has none: once(fn, { name: … })");
  wireAction(name);
  if (options.name === undefined) warnOfNamesake(name, fn);
  if (options.keyedFor !== undefined) span("keyedFor", options.keyedFor);
  refuseGenerator(name, fn);
  let look: ((...args: A) => unknown) | undefined;
  let quiet: string | number | undefined;

  const guarded = (again?: string): Guarded<A, R> =>
    async function (this: unknown, ...args: A): Promise<Awaited<R>> {
      const intent: Intent = {
        name,
        again,
        consequential: true,
        keyedFor: options.keyedFor,
        // A key that comes out as nothing is refused; it is not a call without a key.
        key: options.key ? (options.key(...args) ?? "") : undefined,
        ...counted(args, options),
      };
      return perform(intent, {
        act: () => fn.apply(this, args) as Awaited<R>,
        refused: options.refused,
        look: look && (() => look!.apply(this, args)),
        quiet,
        looksAtAll: !options.by,
      });
    };

  const made: Once<A, R> = Object.assign(guarded(), {
    again(why: string) {
      if (typeof why !== "string" || why.trim() === "") throw new TypeError(`${name}.again() needs a reason`);
      return guarded(why);
    },
    probe(question: (...args: A) => unknown, how: ProbeOptions = {}) {
      if (how.quiet !== undefined) span("quiet", how.quiet);
      look = question;
      quiet = how.quiet;
      return made;
    },
  });
  Object.defineProperty(made, "name", { value: name });
  return made;
}

const sources = new Map<string, string>();

/** Two functions of one name are one action. A module that is loaded again while it is edited looks like that too. */
function warnOfNamesake(name: string, fn: Function): void {
  const source = String(fn);
  const known = sources.get(name);
  sources.set(name, source);
  if (known !== undefined && known !== source) {
    console.warn(`semel: two functions are named ${name}, and an equal call of the second gets the reply of the first. Give one of them { name }.`);
  }
}

export function refuseGenerator(name: string, fn: Function): void {
  if (/^(Async)?GeneratorFunction$/.test(fn.constructor.name)) {
    throw new TypeError(`${name} is a generator: nobody can tell when it has acted`);
  }
}

function counted<A extends unknown[]>(args: A, { key, by }: OnceOptions<A>): { arguments: JsonObject; by?: string[] } {
  if (!by) return { arguments: recorded(args, key !== undefined) };
  // Undefined is a value here: leaving it out would make the list of names differ from call to call.
  const chosen = Object.entries(by(...args)).map(([name, value]) => [name, value === undefined ? null : value]);
  if (chosen.length === 0) throw new TypeError("by names no argument");
  const named = jsonObject(Object.fromEntries(chosen) as object, "by ");
  return { arguments: named, by: Object.keys(named) };
}
