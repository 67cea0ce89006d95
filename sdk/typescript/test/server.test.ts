import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, test } from "node:test";
import { close, configure, current, InDoubt, LedgerUnavailable, once, SemelError } from "../src/index.js";
import { child } from "./children.js";
import { freePort, type Running, serve, TOKEN } from "./servers.js";
import { ending, World } from "./world.js";

const world = new World();
let semel: Running;
let server: string;

before(async () => {
  semel = await serve(world);
  server = semel.address;
});

after(async () => {
  await close();
  semel.kill();
  rmSync(world.directory, { recursive: true, force: true });
});

beforeEach(() => configure({ server, token: TOKEN }));

const acts = (what: string) => world.acts().filter((act) => act === what).length;

test("a server is spoken to over fetch", async () => {
  const charge = once(async function charge(customer: string) {
    world.act(customer);
    return { id: "ch_1", key: current().idempotencyKey };
  });
  const answers = await Promise.all(Array.from({ length: 12 }, () => charge("ann")));
  assert.match(answers[0]!.key!, /./);
  assert.deepEqual(answers, Array(12).fill(answers[0]));
  assert.equal(acts("ann"), 1);
});

test("a wrong token runs nothing", async () => {
  configure({ server, token: "somebody-elses-token-0123456789" });
  const charge = once(function charge(customer: string) {
    world.act(customer);
  });
  const { error } = await ending(charge("no token"));
  assert(error instanceof SemelError);
  assert.equal(acts("no token"), 0);
});

test("a server that is not there runs nothing", async () => {
  configure({ server: `http://127.0.0.1:${await freePort()}`, token: TOKEN });
  const charge = once(function charge(customer: string) {
    world.act(customer);
  });
  const { error } = await ending(charge("no server"));
  assert(error instanceof LedgerUnavailable);
  assert.equal(error.retry, "yes");
  assert.match(error.message, /Nothing was run/);
  assert.equal(acts("no server"), 0);
});

test("an answer to a begin that is lost is asked for again, and it is the same claim", async () => {
  const proxy = await dropping((path, count) => path.endsWith("/begin") && count < 3);
  configure({ server: proxy.address, token: TOKEN });
  const charge = once(function charge(customer: string) {
    world.act(customer);
    return current().attempt;
  });
  assert.equal(await charge("lost begin"), 1);
  assert.equal(acts("lost begin"), 1);
  proxy.close();
});

test("an answer to a settlement that is lost is asked for again", async () => {
  const proxy = await dropping((path, count) => path.endsWith("/settle") && count < 3);
  configure({ server: proxy.address, token: TOKEN });
  const charge = once(function charge(customer: string) {
    world.act(customer);
    return "ch_1";
  });
  assert.equal(await charge("lost settlement"), "ch_1");
  assert.equal(await charge("lost settlement"), "ch_1");
  assert.equal(acts("lost settlement"), 1);
  proxy.close();
});

test("an outcome that cannot be recorded says that the function has run", async () => {
  const proxy = await dropping((path) => path.endsWith("/settle"), "before");
  configure({ server: proxy.address, token: TOKEN });
  const charge = once(function charge(customer: string) {
    world.act(customer);
    return "ch_1";
  });
  const { error } = await ending(charge("not recorded"));
  assert(error instanceof LedgerUnavailable);
  assert.match(error.message, /HAS run.*Safe to retry: no\. Do not call it again/);
  assert.equal(error.value, "ch_1");
  assert.equal(acts("not recorded"), 1);
  proxy.close();
});

test("a doubt is a doubt over a server too", async () => {
  const charge = once(function charge(customer: string) {
    world.act(customer);
    throw new Error("lost");
  });
  assert((await ending(charge("doubt"))).error instanceof InDoubt);
  assert((await ending(charge("doubt"))).error instanceof InDoubt);
  assert.equal(acts("doubt"), 1);
});

test("on a runtime without modules of Node, a server works, and the rest says what is missing", async () => {
  const { stdout, stderr } = await child("edge", { SERVER: server, TOKEN });
  assert.equal(stderr, "");
  const told = JSON.parse(stdout) as { first: unknown; again: unknown; acts: number; run: string; sidecar: string };
  assert.deepEqual(told.first, { acts: 1, of: "order-42", known: true });
  assert.deepEqual(told.again, told.first);
  assert.equal(told.acts, 1);
  assert.match(told.run, /no AsyncLocalStorage/);
  assert.match(told.sidecar, /This runtime starts no programs\. .*SEMEL_SERVER/);
});

test("no module of Node is loaded before it is used, so that an edge runtime can import this one", () => {
  const seen = new Set<string>();
  const follow = (url: URL): void => {
    if (seen.has(url.href)) return;
    seen.add(url.href);
    const imported = readFileSync(url, "utf8").matchAll(/^(?:import|export)[^"']*from\s*["']([^"']+)["']/gm);
    for (const [, from] of imported) {
      assert.match(from!, /^\.\//, `${url.pathname} imports ${from}`);
      follow(new URL(from!, url));
    }
  };
  follow(new URL("../src/index.js", import.meta.url));
  assert(seen.size > 5);
});

/** A proxy that breaks the connection: after the server has answered, or before it has heard. */
async function dropping(drop: (path: string, count: number) => boolean, when: "after" | "before" = "after") {
  const counts = new Map<string, number>();
  const proxy = http.createServer((asked, answer) => {
    const path = asked.url!;
    const count = (counts.get(path) ?? 0) + 1;
    counts.set(path, count);
    const broken = drop(path, count);
    if (broken && when === "before") return void asked.socket.destroy();
    const { host: _, ...headers } = asked.headers;
    const onwards = http.request(server + path, { method: asked.method, headers }, (heard) => {
      if (broken) return void asked.socket.destroy();
      answer.writeHead(heard.statusCode!, heard.headers);
      heard.pipe(answer);
    });
    asked.pipe(onwards);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  return {
    address: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    close: () => void proxy.close().closeAllConnections(),
  };
}
