import type { Answer } from "./errors.js";
import { environment } from "./runtime.js";
import { Server } from "./server.js";
import { Sidecar } from "./sidecar.js";

export interface Configuration {
  /** A path, `postgres://`, `redis://` or `etcd://`; `https://` is a server. Else SEMEL_LEDGER. */
  ledger?: string;
  /** The path of a policy; else SEMEL_POLICY. */
  policy?: string;
  /** The address of a `semel serve`; else SEMEL_SERVER. */
  server?: string;
  /** A token of that server; else SEMEL_TOKEN, or the file SEMEL_TOKEN_FILE. */
  token?: string;
}

export interface Response {
  status: number;
  body: Answer;
}

export interface Transport {
  /** Throws `Unreachable` if no answer came. */
  request(method: "GET" | "POST", path: string, body?: unknown): Promise<Response>;
  close(): Promise<void>;
}

/** No answer came. Nothing is known about the request. */
export class Unreachable extends Error {
  /** `again`: the same request may find an answer now. */
  constructor(
    message: string,
    readonly again: boolean,
  ) {
    super(message);
  }
}

let transport: Transport | undefined;

/** Says where the ledger is. Calls that already run keep to the place where they began. */
export function configure(wanted: Configuration): void {
  const next = choose(wanted);
  void transport?.close();
  transport = next;
}

export function connection(): Transport {
  return (transport ??= choose({}));
}

/** Ends the sidecar. An effect that is still running becomes a doubt; the next call starts another sidecar. */
export async function close(): Promise<void> {
  await transport?.close();
}

/** Deployed code names its place with variables, and tests with `configure`, which comes first. */
function choose(wanted: Configuration): Transport {
  const { policy, token } = wanted;
  const given = wanted.server !== undefined || wanted.ledger !== undefined;
  const server = given ? wanted.server : environment("SEMEL_SERVER") || undefined;
  const ledger = given ? wanted.ledger : environment("SEMEL_LEDGER") || undefined;
  if (server && ledger) {
    const [one, other] = given ? ["`server`", "`ledger`"] : ["SEMEL_SERVER", "SEMEL_LEDGER"];
    throw new TypeError(`${one} and ${other} are two places; name one of them`);
  }
  const remote = server ?? (ledger && /^https?:/i.test(ledger) ? ledger : undefined);
  if (remote !== undefined) return new Server(remote, token);
  if (wanted.ledger !== undefined) checkLedger(wanted.ledger);
  return new Sidecar({ ledger: wanted.ledger, policy });
}

function checkLedger(ledger: string): void {
  const scheme = /^([^/\\]+):\/\//.exec(ledger)?.[1];
  if (ledger.trim() === "" || (scheme && !/^(postgres(ql)?|rediss?(\+cluster|\+unix)?|etcds?)$/.test(scheme))) {
    throw new TypeError(`"${ledger}" is no ledger: give a path, postgres://, redis://, etcd:// or https://`);
  }
}
