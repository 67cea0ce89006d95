import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { type Answer, errorOf, LedgerUnavailable } from "./errors.js";
import { builtin, environment } from "./runtime.js";
import { type Configuration, type Response, type Transport, Unreachable } from "./transport.js";

const PROTOCOL = 1;

/** Enough for an error and its causes. */
const STDERR_CHARS_MAX = 4096;

/** A program that says nothing for so long is no semel: a cold disk takes a second or two. */
const START_MS_MAX = 30_000;

/** `semel sdk --stdio`, started at the first call and once per process. Its end frees its lock on the ledger. */
export class Sidecar implements Transport {
  #program: Promise<Program> | undefined;
  readonly #directory = (globalThis as { process?: { cwd?: () => string } }).process?.cwd?.();

  constructor(readonly place: Pick<Configuration, "ledger" | "policy">) {}

  async request(method: "GET" | "POST", path: string, body?: unknown): Promise<Response> {
    return (await this.#running()).ask(method, path, body);
  }

  async close(): Promise<void> {
    const program = this.#program;
    this.#program = undefined;
    await program?.then((running) => running.close()).catch(() => undefined);
  }

  #running(): Promise<Program> {
    if (this.#program) return this.#program;
    const starting: Promise<Program> = this.#start(() => {
      // The next call starts another one.
      if (this.#program === starting) this.#program = undefined;
    });
    return (this.#program = starting);
  }

  async #start(ended: () => void): Promise<Program> {
    try {
      const [processes, paths] = await Promise.all([
        builtin<typeof import("node:child_process")>("node:child_process"),
        builtin<typeof import("node:path")>("node:path"),
      ]);
      if (!processes || !paths) {
        throw unavailable("This runtime starts no programs.", "Name a `semel serve` in SEMEL_SERVER or in configure({ server }).");
      }
      const env = { ...process.env };
      delete env.SEMEL_SERVER;
      const { ledger, policy } = this.place;
      const directory = this.#directory ?? process.cwd();
      if (ledger) env.SEMEL_LEDGER = ledger.includes("://") ? ledger : paths.resolve(directory, ledger);
      if (policy) env.SEMEL_POLICY = paths.resolve(directory, policy);
      const child = processes.spawn(await findProgram(), ["sdk", "--stdio"], {
        stdio: "pipe",
        env,
        windowsHide: true,
        // Ctrl-C reaches a whole group of processes. The sidecar has to outlive it, to record how the calls ended.
        detached: process.platform !== "win32",
      });
      return await new Program(child, ended).started;
    } catch (error) {
      ended();
      throw error;
    }
  }
}

interface Waiting {
  resolve(response: Response): void;
  reject(error: Error): void;
}

/** One running program: lines of JSON both ways. */
class Program {
  readonly started: Promise<Program>;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<void>;
  readonly #waiting = new Map<number, Waiting>();
  #hello: ((line: string) => void) | undefined;
  #lastId = 0;
  #awaited = true;
  #closing = false;
  #rest = "";
  #stderr = "";
  #end: string | undefined;

  constructor(child: ChildProcessWithoutNullStreams, ended: () => void) {
    this.#child = child;
    child.stdout.setEncoding("utf8").on("data", (text: string) => this.#read(text));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_CHARS_MAX);
    });
    // A broken pipe is the end of the program, which is handled there.
    child.stdin.on("error", () => undefined);
    child.once("exit", ended);
    let spawnError: NodeJS.ErrnoException | undefined;
    child.once("error", (error) => (spawnError = error));
    this.#closed = new Promise((resolve) => {
      child.once("close", (code, signal) => {
        ended();
        const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
        this.#end = spawnError ? `could not be started (${spawnError.message})` : how;
        for (const { reject } of this.#waiting.values()) reject(this.#gone());
        this.#waiting.clear();
        resolve();
      });
    });
    this.started = this.#handshake(() => spawnError);
    this.#keepAlive();
  }

  async ask(method: string, path: string, body?: unknown): Promise<Response> {
    if (this.#end !== undefined) throw this.#gone();
    const id = ++this.#lastId;
    const line = `${JSON.stringify({ id, method, path, body })}\n`;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#keepAlive();
      this.#child.stdin.write(line);
    });
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#keepAlive();
    this.#child.stdin.end();
    await this.#closed;
  }

  async #handshake(spawnError: () => NodeJS.ErrnoException | undefined): Promise<Program> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const line = await new Promise<string | undefined>((resolve) => {
      this.#hello = resolve;
      timer = setTimeout(() => this.#child.kill("SIGKILL"), START_MS_MAX);
      void this.#closed.then(() => resolve(undefined));
    });
    clearTimeout(timer);
    this.#hello = undefined;
    this.#keepAlive();
    if (line === undefined) {
      if (spawnError()?.code === "ENOENT") throw noProgram(this.#child.spawnfile);
      throw unavailable(`${this.#child.spawnfile} ${this.#end} before it was ready.${this.#heard()}`, INSTALL);
    }
    const hello = parse(line) as { semel?: string; protocol?: number } & Answer;
    if (hello?.code) {
      // It ends now, and stderr has the particulars: the lines of a policy that are wrong.
      await this.close();
      const is_it_safe_to_retry = hello.code === "ledger_unavailable" ? "yes" : "no";
      throw errorOf(503, { is_it_safe_to_retry, ...hello, what_happened: `Nothing was run: ${hello.detail?.replace(/\.$/, "")}.${this.#heard()}` }, {});
    }
    if (hello?.protocol !== PROTOCOL) {
      this.#child.stdin.end();
      throw unavailable(`${this.#child.spawnfile} speaks protocol ${hello?.protocol ?? "(none)"}, and this SDK speaks ${PROTOCOL}.`, INSTALL);
    }
    return this;
  }

  #read(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      if (this.#hello) {
        this.#hello(line);
        this.#hello = undefined;
        continue;
      }
      const answer = parse(line) as { id: number; status: number; body: Answer } | undefined;
      const waiting = answer && this.#waiting.get(answer.id);
      if (!waiting) continue;
      this.#waiting.delete(answer.id);
      waiting.resolve({ status: answer.status, body: answer.body ?? {} });
    }
    this.#keepAlive();
  }

  /** The sidecar keeps the process alive while its answer or its end is awaited, and never else. */
  #keepAlive(): void {
    const awaited = this.#waiting.size > 0 || this.#hello !== undefined || this.#closing;
    // Bun counts these calls, so each is made once.
    if (this.#end !== undefined || awaited === this.#awaited) return;
    this.#awaited = awaited;
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout, this.#child.stderr]) {
      // Pipes are sockets in Node; other runtimes may have no such methods on them.
      const { ref, unref } = handle as { ref?: () => void; unref?: () => void };
      (awaited ? ref : unref)?.call(handle);
    }
  }

  #gone(): Unreachable {
    return new Unreachable(`The sidecar ${this.#end}.${this.#heard()}`, false);
  }

  #heard(): string {
    const heard = this.#stderr.trim();
    return heard ? ` It said: ${heard}` : "";
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

const INSTALL = "Install the version of semel that belongs to this package, or name the program in SEMEL_BIN.";

/** SEMEL_BIN, else the package for this platform, else PATH. */
export async function findProgram(): Promise<string> {
  const named = environment("SEMEL_BIN");
  if (named) return named;
  const modules = await builtin<typeof import("node:module")>("node:module");
  try {
    const program = process.platform === "win32" ? "semel.exe" : "semel";
    return modules!.createRequire(import.meta.url).resolve(`${platformPackage()}/bin/${program}`);
  } catch {
    return "semel";
  }
}

function platformPackage(): string {
  return `@semel/${process.platform}-${process.arch}`;
}

function noProgram(program: string): LedgerUnavailable {
  if (program !== "semel") return unavailable(`${program} is not there.`, "Correct SEMEL_BIN.");
  return unavailable(
    `The program semel is not there: neither ${platformPackage()} nor PATH has it.`,
    // npm drops optional dependencies when a lock file was made on another platform.
    `Run \`npm install ${platformPackage()}\`, name the program in SEMEL_BIN, or a server in SEMEL_SERVER.`,
  );
}

function unavailable(happened: string, next: string): LedgerUnavailable {
  const answer: Answer = { code: "ledger_unavailable", what_happened: `Nothing was run. ${happened}`, is_it_safe_to_retry: "yes", next_step: next };
  return errorOf(503, answer, {}) as LedgerUnavailable;
}
