import { type Answer } from "./errors.js";
import { builtin, environment } from "./runtime.js";
import { type Response, type Transport, Unreachable } from "./transport.js";

/** A begin waits at most 60 s for an equal call; the rest is time on the way. */
const ANSWER_MS_MAX = 90_000;

/** A `semel serve`, over fetch: the way on an edge runtime. */
export class Server implements Transport {
  readonly #base: string;
  readonly #token: string | undefined;

  constructor(address: string, token?: string) {
    const url = URL.canParse(address) ? new URL(address) : undefined;
    const local = url && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
    if (!url || !(url.protocol === "https:" || (url.protocol === "http:" && local))) {
      throw new TypeError(`"${address}" is no server: give https://…, or http:// on this machine`);
    }
    this.#base = `${url.origin}${url.pathname.replace(/\/+$/, "")}/api/v1`;
    this.#token = token;
  }

  async request(method: "GET" | "POST", path: string, body?: unknown): Promise<Response> {
    const token = await this.#currentToken();
    const headers: Record<string, string> = { "Content-Type": "application/json" };
    if (token) headers.Authorization = `Bearer ${token}`;
    const sent: Sent = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
    const roots = environment("SEMEL_SERVER_CA");
    let status: number, text: string;
    try {
      ({ status, text } = await (roots ? sendTrusting(roots, this.#base + path, sent) : send(this.#base + path, sent)));
    } catch (error) {
      throw new Unreachable(`${this.#base} gave no answer (${reasons(error)}).`, true);
    }
    try {
      return { status, body: JSON.parse(text) as Answer };
    } catch {
      const detail = `${this.#base} answered ${status} without JSON`;
      // A proxy in between has lost the answer: the request may have arrived.
      if (status >= 500) throw new Unreachable(`${detail}.`, true);
      return { status, body: { detail } };
    }
  }

  async close(): Promise<void> {}

  /** Read for each request: a token in a file is renewed while the process runs. */
  async #currentToken(): Promise<string | undefined> {
    const file = this.#token ? undefined : environment("SEMEL_TOKEN_FILE");
    const given = this.#token ?? environment("SEMEL_TOKEN");
    return given || !file ? given : (await readFile(file)).trim();
  }
}

interface Sent {
  method: string;
  headers: Record<string, string>;
  body: string | undefined;
}

async function send(url: string, sent: Sent): Promise<{ status: number; text: string }> {
  // A redirect would carry the token to another place.
  const response = await fetch(url, { ...sent, redirect: "manual", signal: AbortSignal.timeout(ANSWER_MS_MAX) });
  return { status: response.status, text: await response.text() };
}

/** fetch takes no root certificates of ours. */
async function sendTrusting(roots: string, url: string, { method, headers, body }: Sent): Promise<{ status: number; text: string }> {
  const [https, ca] = await Promise.all([builtin<typeof import("node:https")>("node:https"), readFile(roots)]);
  if (!https) throw new Error("this runtime cannot use SEMEL_SERVER_CA");
  return new Promise((resolve, reject) => {
    const request = https.request(url, { method, headers, ca, signal: AbortSignal.timeout(ANSWER_MS_MAX) }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text }));
      response.on("error", reject);
    });
    request.on("error", reject);
    request.end(body);
  });
}

async function readFile(path: string): Promise<string> {
  const files = await builtin<typeof import("node:fs/promises")>("node:fs/promises");
  if (!files) throw new Error("this runtime has no files");
  return files.readFile(path, "utf8");
}

/** fetch says only "fetch failed"; its cause says why. */
function reasons(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { message?: string; code?: string } };
  return [message, cause?.message || cause?.code].filter(Boolean).join(": ");
}
