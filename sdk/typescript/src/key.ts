/** Longer keys and names are cut and end in a digest. The ledger takes 255 characters. */
const KEY_CHARS_MAX = 255;
const KEY_CHARS_KEPT = 190;
const NAME_CHARS_MAX = 252;

export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
export type JsonObject = { [member: string]: Json };

/** A key is scoped to its function: the same words on two functions are two effects. */
export async function wireKey(name: string, key: unknown): Promise<string> {
  if (typeof key !== "string" || key.trim() === "") {
    throw new TypeError(`the key of ${name} must be a text that is not empty`);
  }
  return shortened(visible(`${name}:${key}`), KEY_CHARS_MAX);
}

export function wireAction(name: string): string {
  const shown = visible(name);
  if (shown === "" || shown.length > NAME_CHARS_MAX) {
    throw new TypeError(`the name of a function has 1 to ${NAME_CHARS_MAX} characters`);
  }
  return `fn:${shown}`;
}

/** One name is one run in every language, so it goes as it is. */
export function namedRun(name: string): string {
  if (name.trim() === "") throw new TypeError("a run must not be empty");
  return name;
}

/** Percent-encodes what is no visible ASCII, and "%" itself, so that no two texts become one. */
function visible(text: string): string {
  // encodeURIComponent refuses lone surrogates, which have no UTF-8.
  return text.replace(/[^!-~]|%/gu, (char) => encodeURIComponent(char));
}

async function shortened(text: string, charsMax: number): Promise<string> {
  if (text.length <= charsMax) return text;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  const hex = Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${text.slice(0, KEY_CHARS_KEPT)}~${hex}`;
}

/**
 * The arguments of a call as an object. JavaScript keeps no parameter names, so they are numbered; a single plain
 * object stands for itself. `lossy` leaves out arguments that are no JSON, for a call that a key names.
 */
export function recorded(args: readonly unknown[], lossy: boolean): JsonObject {
  const named = args.length === 1 && isPlain(args[0]) ? args[0] : Object.fromEntries(args.entries());
  return jsonObject(named, "argument ", lossy);
}

export function jsonObject(from: object, what: string, lossy = false): JsonObject {
  const made = Object.create(null) as JsonObject; // so that a member `__proto__` is a member
  for (const [name, value] of Object.entries(from)) {
    if (value === undefined) continue;
    try {
      made[name] = toJson(value, `${what}${name}`, []);
    } catch (error) {
      if (!lossy) throw error;
    }
  }
  return made;
}

/** Arguments say which call it is, so nothing may vanish from them: a Map, for one, would become {}. */
function toJson(value: unknown, path: string, above: object[]): Json {
  if (value === null || typeof value === "boolean" || typeof value === "string") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (typeof value !== "object") throw notJson(path, typeof value === "number" ? String(value) : `a ${typeof value}`);
  if (above.includes(value)) throw notJson(path, "part of a circle");
  const inside = [...above, value];
  if (Array.isArray(value)) {
    return value.map((item, at) => (item === undefined ? null : toJson(item, `${path}[${at}]`, inside)));
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") {
    return toJson((value as { toJSON(): unknown }).toJSON(), path, inside);
  }
  if (!isPlain(value)) throw notJson(path, `a ${value.constructor?.name ?? "class"}`);
  const made = Object.create(null) as JsonObject; // so that a member `__proto__` is a member
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) made[name] = toJson(member, `${path}.${name}`, inside);
  }
  return made;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const above = Object.getPrototypeOf(value) as object | null;
  // The plain object of another realm (a vm, a test runner) has an Object.prototype of its own.
  return above === null || Object.getPrototypeOf(above) === null;
}

function notJson(path: string, what: string): TypeError {
  return new TypeError(`${path} is ${what}, which is no JSON. Name the arguments that count with \`key\` or \`by\``);
}

/** A span of time as the wire has it: "24h" as it is, seconds as a number. */
export function span(what: string, time: string | number): string {
  if (typeof time === "number" && Number.isSafeInteger(time) && time >= 0) return `${time}s`;
  if (typeof time === "string" && /^[0-9]+(ms|s|m|h|d)$/.test(time)) return time;
  throw new TypeError(`${what} is a text like "24h", or whole seconds`);
}
