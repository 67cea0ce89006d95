/** semel's words about a call, as the specification of the answer has them. */
export interface Answer {
  ok?: boolean;
  outcome?: string;
  effect_id?: string | null;
  code?: string;
  what_happened?: string;
  is_it_safe_to_retry?: Retry;
  next_step?: string;
  human_next_step?: string;
  detail?: string;
  data?: unknown;
  reason?: string | null;
  evidence?: string | null;
  differing?: string[];
  [member: string]: unknown;
}

export type Retry = "yes" | "wait" | "no";

/** The classes of an error, by name. A second copy of this package in one process recognises them too. */
const KINDS = Symbol.for("semel.kinds");

type Branded = { [KINDS]?: string[] } | null | undefined;

/** Makes `instanceof` hold across copies of this package, and names the class. */
function brand(made: Function, name: string): void {
  const above = (Object.getPrototypeOf(made.prototype) as Branded)?.[KINDS] ?? [];
  Object.defineProperties(made.prototype, {
    [KINDS]: { value: [...above, name] },
    name: { value: name, writable: true, configurable: true },
  });
  Object.defineProperty(made, Symbol.hasInstance, {
    value(this: Function, value: Branded): boolean {
      // A class that somebody derived from ours inherits this, and is told apart in the usual way.
      if (this !== made) return Function.prototype[Symbol.hasInstance].call(this, value);
      return value?.[KINDS]?.includes(name) ?? false;
    },
  });
}

export interface About {
  action?: string;
  answer?: Answer;
  cause?: unknown;
  /** The value of a function that has run, where only the recording of it went wrong. */
  value?: unknown;
}

/** semel did not let the call through, or could not. The message is made to be shown to a model. */
export class SemelError extends Error {
  static {
    brand(this, "SemelError");
  }

  readonly effect_id: string | undefined;
  readonly action: string | undefined;
  readonly code: string | undefined;
  readonly retry: Retry;
  readonly next_step: string;
  readonly answer: Answer;
  readonly value: unknown;

  constructor(message: string, { action, answer = {}, cause, value }: About = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.action = action;
    this.answer = answer;
    this.value = value;
    this.effect_id = answer.effect_id ?? undefined;
    this.code = answer.code;
    this.retry = answer.is_it_safe_to_retry ?? "no";
    this.next_step = answer.next_step ?? "";
  }
}

/** An earlier effect must be decided, or finish, first. */
export class Held extends SemelError {
  static {
    brand(this, "Held");
  }
}

/** It may have happened, and nobody knows. */
export class InDoubt extends Held {
  static {
    brand(this, "InDoubt");
  }
}

/** An equal call is still running. */
export class InFlight extends Held {
  static {
    brand(this, "InFlight");
  }
}

/** It looks like an earlier call in other words. */
export class Lookalike extends Held {
  static {
    brand(this, "Lookalike");
  }
}

/** Its run was cancelled. */
export class Cancelled extends Held {
  static {
    brand(this, "Cancelled");
  }
}

/** The key is known with other arguments. */
export class Drift extends SemelError {
  static {
    brand(this, "Drift");
  }
}

/** semel cannot do its work: no program, no ledger, no server, or a policy that does not hold together. */
export class LedgerUnavailable extends SemelError {
  static {
    brand(this, "LedgerUnavailable");
  }
}

/** It ran and is on record, but its reply is no JSON. `value` has it; a repeat gets null. */
export class UnstorableReply extends SemelError {
  static {
    brand(this, "UnstorableReply");
  }

  constructor(action: string, about: About) {
    super(`[semel] ${action} was done and is recorded, but its reply cannot be stored. Safe to retry: no. Its reply is in \`value\`; return JSON from it.`, about);
  }
}

/** A tool throws it to say that it certainly did nothing. */
export class Refused extends Error {
  static {
    brand(this, "Refused");
  }

  /** semel's words, where another call was refused and this one waited for it. */
  readonly answer: Answer | undefined;

  constructor(message?: string, { cause, answer }: { cause?: unknown; answer?: Answer } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.answer = answer;
  }
}

const BY_CODE: Record<string, typeof SemelError> = {
  in_doubt: InDoubt,
  budget_spent: InDoubt,
  in_flight: InFlight,
  lookalike: Lookalike,
  superseded: Held,
  held_for_person: Held,
  cancelled: Cancelled,
  drift: Drift,
  ledger_unavailable: LedgerUnavailable,
  policy_invalid: LedgerUnavailable,
};

/** The error of an answer that is not ok. */
export function errorOf(status: number, answer: Answer, about: { action?: string; cause?: unknown; value?: unknown }): SemelError {
  const Made = (answer.code && BY_CODE[answer.code]) || (status >= 500 ? LedgerUnavailable : SemelError);
  return new Made(messageOf(status, answer), { ...about, answer });
}

/** What happened, is it safe to retry, what to do: in the form that semel's other doors use. */
function messageOf(status: number, answer: Answer): string {
  if (!answer.code) return `[semel] ${answer.detail ?? `the request was answered with ${status}`}`;
  const id = answer.effect_id ? ` ${answer.effect_id}` : "";
  const happened = sentence(answer.what_happened ?? answer.detail);
  return `[semel] ${answer.code}${id}:${happened} Safe to retry: ${answer.is_it_safe_to_retry ?? "no"}.${sentence(answer.next_step)}`;
}

function sentence(text: string | undefined): string {
  return text ? ` ${/[.!?]$/.test(text) ? text : `${text}.`}` : "";
}

export function isAbort(error: unknown): boolean {
  return (error as { name?: unknown } | null)?.name === "AbortError";
}
