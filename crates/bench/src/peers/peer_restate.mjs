// Restate: an invocation per idempotency key with one journaled step that does nothing.
//
// usage: peer_restate.mjs DIRECTORY CALLERS, then a number of calls a line; `again N` repeats the keys of the line before
//
// Callers, handlers and server are a process each, as they would be elsewhere.

import { fork, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import * as restate from "@restatedev/restate-sdk";

if (process.argv[2] === "serve") serve();
else await drive(process.argv[2], Number(process.argv[3]));

function serve() {
  let ran = 0;
  const effect = () => {
    ran += 1;
    return "r".repeat(200);
  };
  const guard = restate.service({
    name: "guard",
    handlers: { run: (context) => context.run("effect", effect) },
  });
  const server = http2.createServer(restate.createEndpointHandler({ services: [guard] }));
  server.listen(0, "127.0.0.1", () => process.send(server.address().port));
  process.on("message", () => process.send(ran));
  process.on("disconnect", () => process.exit());
}

async function drive(directory, callers) {
  // Whatever hangs, the bench goes on: a handler that fails is tried again for ever.
  setTimeout(() => fail("no end after ten minutes"), 600_000).unref();
  const installed = fileURLToPath(new URL("node_modules/@restatedev/", import.meta.url));
  const environment = { ...process.env, NODE_ENV: "production", RESTATE_LOGGING: "ERROR" };
  const handlers = fork(fileURLToPath(import.meta.url), ["serve"], { env: environment });
  // Its log writes through to the disk by default. Sockets in its own directory need no free port.
  const server = spawn(
    `${installed}restate-server-${process.platform}-${process.arch}/bin/restate-server`,
    ["--base-dir", "data", "--node-name", "bench", "--listen-mode", "unix", "--log-filter", "off"],
    { cwd: directory, env: { ...process.env, RESTATE_DISABLE_TELEMETRY: "true" }, stdio: "ignore" },
  );
  // Nobody opens its data again, so it need not end in order.
  process.on("exit", () => [handlers, server].forEach((child) => child.kill("SIGKILL")));
  server.on("error", (error) => fail(error.message));
  // A path from here stays short enough for a socket.
  process.chdir(directory);
  const [port] = await once(handlers, "message");
  await ready(server, { uri: `http://127.0.0.1:${port}` });

  const agent = new http.Agent({ keepAlive: true, maxSockets: callers });
  const ran = async () => {
    handlers.send("ran?");
    return (await once(handlers, "message"))[0];
  };
  const turn = async (series, calls, expected = calls) => {
    const before = await ran();
    let next = 0;
    const caller = async () => {
      while (next < calls) {
        const headers = { "idempotency-key": `${series}-${next++}` };
        const status = await post("ingress", "/guard/run", undefined, { agent, headers });
        if (status !== 200) throw new Error(`a call was answered with ${status}`);
      }
    };
    const started = performance.now();
    await Promise.all(Array.from({ length: callers }, caller));
    const took = (performance.now() - started) / 1000;
    const count = (await ran()) - before;
    if (count !== expected) throw new Error(`${count} of ${calls} ran, not ${expected}`);
    return calls / took;
  };
  await turn("warm", 400);
  const version = JSON.parse(readFileSync(`${installed}restate-server/package.json`)).version;
  console.log(JSON.stringify({ version }));
  let series;
  for await (const line of createInterface({ input: process.stdin })) {
    const [calls, again] = line.split(" ").reverse();
    if (!again) series = `at-${performance.now()}`;
    const rate = await turn(series, Number(calls), again ? 0 : Number(calls));
    console.log(JSON.stringify({ calls_per_second: rate }));
  }
  server.kill("SIGKILL");
  handlers.disconnect();
  // Processor time is only counted of children that were waited for.
  await Promise.all([once(server, "exit"), once(handlers, "exit")]);
}

/** Gives the server the handlers, and waits until a call reaches them. */
async function ready(server, deployment) {
  const headers = { "content-type": "application/json" };
  await until(server, [200, 201], () => post("admin", "/deployments", deployment, { headers }));
  await until(server, [200], () => post("ingress", "/guard/run", undefined, {}));
}

async function until(server, wanted, ask) {
  let last;
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (server.exitCode !== null) fail(`the server ended with ${server.exitCode}`);
    last = await ask().catch((error) => error.message);
    if (wanted.includes(last)) return;
    await pause(200);
  }
  fail(`the server is not ready: ${last}`);
}

function post(door, path, body, options) {
  return new Promise((resolve, reject) => {
    const to = { socketPath: `data/bench/${door}.sock`, method: "POST", path, ...options };
    const request = http.request(to, (answer) => {
      answer.resume().on("end", () => resolve(answer.statusCode)).on("error", reject);
    });
    request.on("error", reject).end(body && JSON.stringify(body));
  });
}

function fail(why) {
  console.error(`Restate: ${why}`);
  process.exit(1);
}
