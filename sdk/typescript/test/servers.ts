// Real servers that hold a ledger, each in a directory of a test's own and on a free port of loopback.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { chownSync, existsSync, readdirSync, writeFileSync } from "node:fs";
import http from "node:http";
import { type AddressInfo, connect } from "node:net";
import { delimiter, join } from "node:path";
import { findProgram } from "../src/sidecar.js";
import type { World } from "./world.js";

export const TOKEN = "a-token-for-the-tests-of-the-sdk-0123";

export interface Running {
  address: string;
  kill(): void;
}

export interface Certificate {
  key: string;
  certificate: string;
}

/** `semel serve` on the ledger of a world. With a certificate, it speaks TLS. */
export async function serve(world: World, rules = "", tls?: Certificate): Promise<Running> {
  const port = await freePort();
  const policy = join(world.directory, "serve.toml");
  const files = tls ? `tls = { certificate = "${tls.certificate}", key = "${tls.key}" }\n` : "";
  writeFileSync(policy, `[serve]\nlisten = "127.0.0.1:${port}"\n${files}\n${rules}`);
  const env = { ...process.env, SEMEL_SERVE_TOKEN: TOKEN, SEMEL_LEDGER: world.ledger, SEMEL_POLICY: policy };
  const semel = spawn(await findProgram(), ["serve"], { env, stdio: ["ignore", "ignore", "pipe"] });
  let heard = "";
  await new Promise<void>((resolve, reject) => {
    semel.stderr.setEncoding("utf8").on("data", (text: string) => {
      if ((heard += text).includes("listening")) resolve();
    });
    semel.once("exit", () => reject(new Error(`semel serve ended: ${heard}`)));
    semel.once("error", reject);
  });
  return { address: tls ? `https://localhost:${port}` : `http://127.0.0.1:${port}`, kill: () => void semel.kill("SIGKILL") };
}

export const hasOpenssl = has("openssl");

/** As docs/operate.md makes one for a private network. */
export function makeCertificate(directory: string): Certificate {
  const [key, certificate] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext basicConstraints=critical,CA:FALSE";
  spawnSync("openssl", [...words.split(" "), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]);
  return { key, certificate };
}

/** By its name: undefined where it is not installed. */
export const ENGINES: Record<string, ((directory: string) => Promise<Running>) | undefined> = {
  postgres: initdb() ? startPostgres : undefined,
  redis: has("redis-server") ? startRedis : undefined,
  etcd: has("etcd") ? startEtcd : undefined,
};

async function startPostgres(directory: string): Promise<Running> {
  const port = await freePort();
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
  if (user.uid) chownSync(directory, user.uid, user.gid);
  const data = join(directory, "data");
  const options = { ...user, cwd: "/", stdio: "ignore" } as const;
  spawnSync(initdb()!, ["-U", "semel", "-A", "trust", "--no-sync", "-D", data], options);
  const server = spawn(initdb()!.replace(/initdb$/, "postgres"), ["-D", data, "-h", "127.0.0.1", "-p", `${port}`, "-k", ""], options);
  // It takes connections before it takes questions, and says so in its answer to this request for TLS.
  const asksForTls = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
  return started(server, `postgres://semel@127.0.0.1:${port}/postgres?sslmode=disable&schema=`, () => tcp(port, asksForTls, /^N/));
}

async function startRedis(directory: string): Promise<Running> {
  const port = await freePort();
  const words = `--port ${port} --bind 127.0.0.1 --appendonly yes --appendfsync always --save`;
  const server = spawn("redis-server", [...words.split(" "), "", "--dir", directory], { stdio: "ignore" });
  return started(server, `redis://127.0.0.1:${port}?ledger=`, () => tcp(port, "PING\r\n", /^\+PONG/));
}

async function startEtcd(directory: string): Promise<Running> {
  const [port, peer] = [await freePort(), `http://127.0.0.1:${await freePort()}`];
  const here = `http://127.0.0.1:${port}`;
  const words = `--name one --data-dir ${directory} --log-level error --listen-client-urls ${here} --advertise-client-urls ${here}`;
  const peers = `--listen-peer-urls ${peer} --initial-advertise-peer-urls ${peer} --initial-cluster one=${peer}`;
  const server = spawn("etcd", `${words} ${peers}`.split(" "), { stdio: "ignore" });
  const isHealthy = async () => (await (await fetch(`${here}/health`)).text()).includes('"true"');
  return started(server, `etcd://127.0.0.1:${port}?ledger=`, isHealthy);
}

async function started(server: ChildProcess, address: string, answers: () => Promise<boolean>): Promise<Running> {
  while (!(await answers().catch(() => false))) {
    if (server.exitCode !== null) throw new Error(`${server.spawnfile} ended with ${server.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return { address, kill: () => void server.kill("SIGKILL") };
}

function tcp(port: number, asked: string | Buffer, wanted: RegExp): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => socket.write(asked));
    socket.once("data", (heard) => (socket.destroy(), resolve(wanted.test(heard.toString()))));
    socket.once("error", reject).once("close", () => resolve(false));
  });
}

export async function freePort(): Promise<number> {
  const probe = http.createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

function initdb(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian) ? readdirSync(debian).map((version) => join(debian, version, "bin/initdb")) : [];
  return versions.find((path) => existsSync(path));
}

function has(program: string): boolean {
  return (process.env.PATH ?? "").split(delimiter).some((directory) => existsSync(join(directory, program)));
}
