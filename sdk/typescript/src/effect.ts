import { type Answer, errorOf, InDoubt, isAbort, LedgerUnavailable, Refused, SemelError, UnstorableReply } from "./errors.js";
import { type JsonObject, jsonObject, namedRun, span, wireAction, wireKey } from "./key.js";
import { type Effect, identities, runOf, within } from "./run.js";
import { connection, type Response, type Transport, Unreachable } from "./transport.js";

/** A begin whose answer was lost is asked again with its nonce, so often in all. */
const BEGIN_TRIES_MAX = 3;

/** How long to try to record an outcome. The ledger calls it a doubt if nobody does. */
const SETTLE_MS_MAX = 5_000;

const WHY_CHARS_MAX = 500;

/** A reply above 1 MiB is not kept, so it is not sent. These are 3 MiB of UTF-8 at most, and a line takes 4. */
const REPLY_CHARS_SENT_MAX = 1024 * 1024;

/** Errors: their classes in a list, or a function that knows them. */
export type Errors = readonly (abstract new (...args: any[]) => unknown)[] | ((error: unknown) => boolean);

/** A wanted call. */
export interface Intent {
  name: string;
  arguments: JsonObject;
  /** Only these arguments make two calls the same, within the run. */
  by?: string[] | undefined;
  key?: string | undefined;
  run?: string | undefined;
  again?: string | undefined;
  keyedFor?: string | number | undefined;
  callId?: string | undefined;
  /** A repeat is answered from the record. Without it, the policy and the defaults decide. */
  consequential?: boolean;
}

/** How the call is made and read. */
export interface Means<T> {
  act(effect: Effect): T | PromiseLike<T>;
  refused?: Errors | undefined;
  /** A framework's own pause: nothing has happened yet. */
  pause?: Errors | undefined;
  /** A value: it happened. Null or undefined: it did not. An error: not known. */
  look?: (() => unknown) | undefined;
  quiet?: string | number | undefined;
  /** False: equal calls may differ in arguments that `look` goes by, so its no says nothing about the doubt. */
  looksAtAll?: boolean | undefined;
  dump?: ((value: T) => unknown) | undefined;
  load?: ((reply: any, answer: Answer) => T) | undefined;
}

export interface EffectOptions {
  /** Names the effect for ever. */
  key?: string;
  /** The arguments that make two calls the same, within the run. */
  by?: readonly string[];
  /** Errors that prove that nothing happened, beside `Refused`. */
  refused?: Errors;
  /** The tool honours the idempotency key for so long. */
  keyedFor?: string | number;
  /** A reason to do it once more, on purpose. */
  again?: string;
  run?: string;
}

/** Runs `act` at most once for this name and these arguments, and gives its value, now or from the record. */
export async function effect<T>(
  name: string,
  args: object,
  act: (effect: Effect) => T | PromiseLike<T>,
  options: EffectOptions = {},
): Promise<Awaited<T>> {
  const { refused, by, ...more } = options;
  const known = jsonObject(args, "argument ", more.key !== undefined || by !== undefined);
  const missing = by?.find((member) => !Object.hasOwn(known, member));
  if (by?.length === 0 || missing !== undefined) throw new TypeError(`by: ${missing ?? "it"} is no argument with a value`);
  const intent = { name, arguments: known, by: by && [...by], consequential: true, ...more };
  return (await perform(intent, { act, refused })) as Awaited<T>;
}

/** The one path of every call: begin, act, settle, and in doubt look once. */
export async function perform<T>(intent: Intent, means: Means<T>): Promise<T> {
  const link = connection();
  const begin = await beginOf(intent);
  refuseInsideItself(begin);
  let { look } = means;
  for (;;) {
    const ended = await attempt(link, begin, means);
    if (!(ended instanceof Doubt)) return ended.value;
    if (!look) throw ended.error;
    const seen = await lookOnce(link, ended.error, look, means);
    if (seen) return seen.value as T;
    look = undefined;
  }
}

/** What a call would meet. `hold`: an earlier effect must be decided first, most often a doubt. */
export type Foreseen = "run" | "replay" | "wait" | "hold" | "refuse";

export async function foresee(intent: Intent): Promise<Foreseen> {
  const asked = { ...(await beginOf(intent)), dry_run: true };
  const { status, body } = await ask(connection(), asked);
  if (status !== 200) throw errorOf(status, body, { action: asked.action });
  return body.would as Foreseen;
}

/** A person's ruling on a doubt. A server takes it from an operator's token only. */
export async function resolve(effectId: string, verdict: "applied" | "not_applied", reason: string, reply?: unknown): Promise<Answer> {
  const path = `/effects/${encodeURIComponent(effectId)}/resolve`;
  const { status, body } = await connection()
    .request("POST", path, { verdict, reason, reply })
    .catch((error: unknown) => Promise.reject(unavailable(error)));
  if (status >= 400) throw errorOf(status, body, {});
  return body;
}

type Begin = { action: string } & Record<string, unknown>;

async function beginOf(intent: Intent): Promise<Begin> {
  const { name, key, by, again, callId } = intent;
  const action = wireAction(name);
  const run = await runOf(intent.run);
  return {
    action,
    arguments: intent.arguments,
    key: key === undefined ? undefined : await wireKey(name, key),
    run: run === undefined ? undefined : namedRun(run),
    by,
    again,
    class: intent.consequential ? "consequential" : undefined,
    keyed_for: intent.keyedFor === undefined ? undefined : span("keyedFor", intent.keyedFor),
    call_id: callId || undefined,
  };
}

/** The same call inside of itself would wait for its own end. Most often, one tool was guarded twice. */
function refuseInsideItself(begin: Begin): void {
  if (!identities().includes(identityOf(begin))) return;
  throw told(new Refused(`[semel] ${begin.action} is called inside of itself with the same arguments. Nothing was run. Guard it once: with once() or with an adapter.`));
}

function identityOf({ action, arguments: args, key, run, again }: Begin): string {
  return JSON.stringify([action, key ?? args, key ? null : run, again]);
}

/** Someone may have done it, and nobody knows. */
class Doubt {
  constructor(readonly error: InDoubt) {}
}

type Ended<T> = { value: T } | Doubt;

async function attempt<T>(link: Transport, begin: Begin, means: Means<T>): Promise<Ended<T>> {
  const { action } = begin;
  const { status, body } = await ask(link, { ...begin, nonce: crypto.randomUUID() });
  if (status === 200 && body.outcome === "run") return act(link, begin, body, means);
  if (status === 200 && body.ok) return { value: load(means, body) };
  if (body.code === "upstream_refused") throw told(refusedElsewhere(body));
  const error = errorOf(status, body, { action });
  // A doubt about a call that only looks like this one: this call's question would ask for another thing.
  if (error instanceof InDoubt && error.effect_id && !body.differing?.length) return new Doubt(error);
  throw error;
}

async function act<T>(link: Transport, begin: Begin, right: Answer, means: Means<T>): Promise<Ended<T>> {
  const { action } = begin;
  const effect: Effect = {
    action,
    id: right.effect_id ?? undefined,
    idempotencyKey: (right.idempotency_key as string | null) ?? undefined,
    attempt: (right.attempt as number | null) ?? 1,
    run: begin.run as string | undefined,
    possibleRepeat: right.possible_repeat === true,
  };
  const claim = right.claim as string | null;
  let value: T;
  try {
    value = await within(effect, identityOf(begin), () => means.act(effect));
  } catch (error) {
    if (claim === null) throw error; // a read
    return failed(link, { action, claim, effect_id: effect.id }, error, means);
  }
  if (claim !== null) await succeeded(link, { action, claim, effect_id: effect.id }, value, means);
  return { value };
}

interface Claim {
  action: string;
  claim: string;
  effect_id: string | undefined;
}

async function succeeded<T>(link: Transport, claim: Claim, value: T, means: Means<T>): Promise<void> {
  const { action } = claim;
  let reply: string | undefined, unstorable: unknown;
  try {
    reply = JSON.stringify((means.dump ? means.dump(value) : value) ?? null);
    if (reply === undefined) throw new TypeError(`a ${typeof value} is no JSON`);
  } catch (error) {
    unstorable = error;
  }
  const kept = reply !== undefined && reply.length <= REPLY_CHARS_SENT_MAX ? { reply: JSON.parse(reply) as unknown } : {};
  let { status, body } = await settle(link, claim, { outcome: "applied", ...kept }, { value });
  if (status === 400 || status === 413) {
    // Nothing but the reply can be wrong with it.
    unstorable ??= new TypeError(body.detail);
    ({ status, body } = await settle(link, claim, { outcome: "applied" }, { value }));
  }
  if (status >= 400) throw body.code ? errorOf(status, body, { action, value }) : unsettled(claim, body.detail, { value });
  if (unstorable) throw new UnstorableReply(action, { action, value, cause: unstorable, answer: body });
}

/** Settles an attempt that threw: only a refusal and a pause say that nothing happened. */
async function failed<T>(link: Transport, claim: Claim, error: unknown, means: Means<T>): Promise<Ended<T>> {
  const { action } = claim;
  const why = whyOf(error);
  if (means.pause && matches(means.pause, error)) {
    await settle(link, claim, { outcome: "awaiting_input", why }, { cause: error });
    throw error;
  }
  // The refusal of another guarded call inside of this one says nothing about this one.
  const isOwn = !(error instanceof SemelError) && !endings.has(error as object);
  if (isOwn && (error instanceof Refused || (means.refused && matches(means.refused, error)))) {
    await settle(link, claim, { outcome: "not_applied", why }, { cause: error });
    throw told(error);
  }
  if (isAbort(error)) {
    // The caller is going away. It is recorded all the same, and the abort goes on as it is.
    await settle(link, claim, { outcome: "in_doubt", why }, { cause: error }).catch(() => undefined);
    throw error;
  }
  const { status, body } = await settle(link, claim, { outcome: "in_doubt", why }, { cause: error });
  if (status === 200 && body.ok) return { value: load(means, body) }; // a rule's probe has found it
  if (body.code === "upstream_refused") throw error; // a rule's probe has not
  const known = body.code ? errorOf(status, body, { action, cause: error }) : unsettled(claim, body.detail, { cause: error });
  if (known instanceof InDoubt) return new Doubt(known);
  throw known;
}

/** The errors by which calls of semel have ended. */
const endings = new WeakSet<object>();

function told<T>(error: T): T {
  if (typeof error === "object" && error !== null) endings.add(error);
  return error;
}

/** Undefined: it certainly did not happen, and may run. */
async function lookOnce(link: Transport, doubt: InDoubt, look: () => unknown, { quiet, looksAtAll }: Pick<Means<unknown>, "quiet" | "looksAtAll">): Promise<{ value: unknown } | undefined> {
  const path = `/effects/${encodeURIComponent(doubt.effect_id ?? "")}/probe`;
  const asked = performance.now();
  let response: Response;
  try {
    const value = await look();
    if (value !== null && value !== undefined) {
      response = await link.request("POST", path, { found: "yes", reply: value });
      if (response.status === 200) return { value };
    } else if (looksAtAll === false) {
      throw doubt; // the doubt may be about other arguments than those that were looked for
    } else {
      const asked_ms_ago = Math.ceil(performance.now() - asked);
      const told = { found: "no", asked_ms_ago, quiet: quiet === undefined ? undefined : span("quiet", quiet) };
      response = await link.request("POST", path, told);
    }
  } catch {
    // The question had no answer, or its answer could not be told: still a doubt.
    throw doubt;
  }
  const { status, body } = response;
  // 409 without advice: somebody else has cleared the doubt, and the next begin tells how.
  if (status === 200 || (status === 409 && !body.is_it_safe_to_retry)) return undefined;
  if (status !== 409) throw doubt;
  const answer: Answer = {
    ...doubt.answer,
    is_it_safe_to_retry: "wait",
    next_step: "It was not found, but it may still be carried out. Make the same call again later: it looks again first.",
  };
  throw errorOf(423, answer, { action: doubt.action, cause: doubt.cause });
}

/** Asks for the right to run. Nothing was run if this throws. */
async function ask(link: Transport, begin: Begin): Promise<Response> {
  for (let tries = 1; ; tries++) {
    try {
      return await link.request("POST", "/begin", begin);
    } catch (error) {
      if (!(error instanceof Unreachable && error.again && tries < BEGIN_TRIES_MAX)) throw unavailable(error, begin.action);
    }
  }
}

/** Reports an outcome, again and again for a while: the same report twice is one report. */
async function settle(link: Transport, claim: Claim, outcome: object, about: { value?: unknown; cause?: unknown }): Promise<Response> {
  const until = performance.now() + SETTLE_MS_MAX;
  for (let pauseMs = 50; ; pauseMs *= 2) {
    let trouble: string | undefined;
    try {
      const response = await link.request("POST", "/settle", { claim: claim.claim, ...outcome });
      const { code } = response.body;
      if (response.status < 500 || (code && code !== "ledger_unavailable")) return response;
      trouble = response.body.detail;
    } catch (error) {
      trouble = (error as Error).message;
    }
    if (performance.now() + pauseMs > until) throw unsettled(claim, trouble, about);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

function unsettled({ action, effect_id }: Claim, trouble: string | undefined, about: { value?: unknown; cause?: unknown }): LedgerUnavailable {
  const answer: Answer = {
    code: "ledger_unavailable",
    effect_id,
    what_happened: `${action} HAS run, and its outcome could not be recorded: ${trouble ?? "no reason is known"}`,
    is_it_safe_to_retry: "no",
    next_step: "Do not call it again. Check with a read-only tool whether it happened, or tell the user that it needs a decision.",
  };
  return errorOf(503, answer, { action, ...about }) as LedgerUnavailable;
}

/** Nothing was sent: the request for it had no answer. */
function unavailable(error: unknown, action?: string): unknown {
  if (!(error instanceof Unreachable)) return error;
  const answer: Answer = {
    code: "ledger_unavailable",
    what_happened: `Nothing was run. ${error.message}`,
    is_it_safe_to_retry: "yes",
    next_step: "Tell the user that the ledger cannot be reached. The same call may be made once it can.",
  };
  return errorOf(503, answer, { action, cause: error });
}

function refusedElsewhere(answer: Answer): Refused {
  const { data } = answer;
  const said = typeof data === "string" ? data : data ? JSON.stringify(data) : answer.what_happened;
  return new Refused(said, { answer });
}

function load<T>(means: Means<T>, answer: Answer): T {
  return means.load ? means.load(answer.data, answer) : (answer.data as T);
}

function matches(errors: Errors, error: unknown): boolean {
  return typeof errors === "function" ? errors(error) : errors.some((known) => error instanceof known);
}

function whyOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  // Half of a surrogate pair is no UTF-8, and the whole report would be refused.
  return Array.from(text.toWellFormed()).slice(0, WHY_CHARS_MAX).join("");
}

