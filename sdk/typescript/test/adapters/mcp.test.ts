import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { type CallToolResult, ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as client2 from "@modelcontextprotocol/client";
import * as server2 from "@modelcontextprotocol/server";
import { z } from "zod";
import * as guarded from "../../examples/mcp.js";
import { guard } from "../../src/adapters/mcp.js";
import { resolve } from "../../src/index.js";
import { eachInItsWorld } from "../world.js";
import { charge, crash, CRASHING, effectIdIn, type Ending, withoutSemel } from "./failures.js";

type Answer = { happened: boolean; reason: string };

type Call = (customer?: string) => Promise<CallToolResult>;
type ClientOf = (file: string, ending: Ending, answer?: Answer, without?: "without semel") => Promise<Call>;

const tool = (file: string, ending: Ending) => async (customer: string): Promise<CallToolResult> => {
  if (customer === "nobody") return { isError: true, content: [{ type: "text", text: "no such customer" }] };
  return { content: [{ type: "text", text: JSON.stringify(charge(file, customer, ending)) }] };
};
const INFO = { name: "billing", version: "1.0.0" };
const asked = (customer: string) => ({ name: "charge", arguments: { customer }, _meta: { "dev.semel/run-id": "order-42" } });

const unguarded = () => withoutSemel<typeof guarded>("mcp", "(server) => server");

/** A client of a server with the tool. With an answer, the client can ask its user. */
const version1: ClientOf = async (file, ending, answer, without) => {
  const { serverOf } = without ? await unguarded() : guarded;
  const client = new Client(INFO, { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept" as const, content: answer }));
  const [here, there] = InMemoryTransport.createLinkedPair();
  await Promise.all([serverOf(tool(file, ending)).connect(here), client.connect(there)]);
  return async (customer = "ann") => (await client.callTool(asked(customer))) as CallToolResult;
};

const version2: ClientOf = async (file, ending, answer, without) => {
  const act = tool(file, ending);
  const server = without ? new server2.McpServer(INFO) : guard(new server2.McpServer(INFO));
  server.registerTool("charge", { inputSchema: z.object({ customer: z.string() }) }, ({ customer }) => act(customer) as Promise<server2.CallToolResult>);
  const client = new client2.Client(INFO, { capabilities: answer ? { elicitation: {} } : {} });
  if (answer) client.setRequestHandler("elicitation/create", () => ({ action: "accept" as const, content: answer }));
  const [here, there] = server2.InMemoryTransport.createLinkedPair();
  await Promise.all([server.connect(here), client.connect(there)]);
  return async (customer = "ann") => (await client.callTool(asked(customer))) as CallToolResult;
};

const textOf = ({ content }: CallToolResult) => content.map((part) => (part.type === "text" ? part.text : "")).join("\n");

if (CRASHING) {
  await (await version1(CRASHING, "crash", undefined, process.env.UNGUARDED ? "without semel" : undefined))();
} else {
  const world = eachInItsWorld();

  for (const [mcp, clientOf] of [
    ["MCP", version1],
    ["MCP 2", version2],
  ] as const) {
    test(`${mcp}: the answer is lost, the client calls again, a person decides, and the record answers`, async () => {
      const call = await clientOf(world().file, "lose");
      for (const told of [await call(), await call()]) {
        assert.equal(told.isError, true);
        assert.match(textOf(told), /may have been carried out.*Safe to retry: no/);
        assert.doesNotMatch(textOf(told), /try again/i);
      }
      await resolve(effectIdIn(textOf(await call())), "applied", "seen in the dashboard", { id: "ch_1" });
      assert.equal(textOf(await call()), '{"id":"ch_1"}');
      assert.deepEqual(world().acts(), ["ann"]);
    });

    test(`${mcp}: a client that can ask its user asks, and the tool does not run`, async () => {
      const call = await clientOf(world().file, "lose", { happened: true, reason: "seen in the dashboard" });
      const told = await call();
      assert(!told.isError);
      assert.match(textOf(told), /^\[semel\] ef_.*seen in the dashboard/);
      assert.deepEqual(world().acts(), ["ann"]);
    });

    test(`${mcp}: a failure that the tool reports is no doubt`, async () => {
      const call = await clientOf(world().file, "answer");
      for (const told of [await call("nobody"), await call("nobody")]) {
        assert.deepEqual(told.content, [{ type: "text", text: "no such customer" }]);
        assert.equal(told.isError, true);
      }
    });

    test(`${mcp}: equal calls at once run once`, async () => {
      const call = await clientOf(world().file, "answer");
      const answers = await Promise.all([call(), call(), call()]);
      assert.deepEqual(answers.map(textOf), Array(3).fill('{"id":"ch_1"}'));
      assert.deepEqual(world().acts(), ["ann"]);
    });

    test(`${mcp}: after a crash the same call says what may have happened`, async () => {
      await crash(import.meta.url, world());
      const told = await (await clientOf(world().file, "answer"))();
      assert.match(textOf(told), /may have been carried out/);
      assert.deepEqual(world().acts(), ["ann"]);
    });

    test(`${mcp} without semel: a lost answer is repeated, equal calls all run, a crashed call runs again`, async () => {
      const losing = await clientOf(world().file, "lose", undefined, "without semel");
      for (const told of [await losing(), await losing()]) assert.equal(told.isError, true);
      assert.equal(world().acts().length, 2);
      const call = await clientOf(world().file, "answer", undefined, "without semel");
      await Promise.all([call(), call(), call()]);
      assert.equal(world().acts().length, 2 + 3);
      await crash(import.meta.url, world(), { UNGUARDED: "yes" });
      await call();
      assert.equal(world().acts().length, 2 + 3 + 2);
    });
  }
}
