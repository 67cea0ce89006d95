// A server that charges customers, with the official TypeScript SDK, over stdio or HTTP and for both eras.
//
// usage: charging.mjs          serves its own stdin and stdout
//        charging.mjs http     prints `listening PORT` and serves `/mcp` on loopback
//
// Each effect is one line at the end of the file that SEMEL_WORLD names: what a test counts.
import { randomUUID } from 'node:crypto';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as pause } from 'node:timers/promises';

const require = createRequire(`${process.env.SEMEL_PEERS}/package.json`);
const { acceptedContent, createMcpHandler, fromJsonSchema, inputRequired, McpServer } =
  require('@modelcontextprotocol/server');
const { serveStdio } = require('@modelcontextprotocol/server/stdio');
const { toNodeHandler } = require('@modelcontextprotocol/node');

const WORLD = process.env.SEMEL_WORLD;

/** Changes the world, in one write that other writers cannot split, and returns a new id. */
function change(what) {
  const id = `ch_${randomUUID()}`;
  appendFileSync(WORLD, `${JSON.stringify({ id, pid: process.pid, ...what })}\n`);
  return id;
}

const object = (properties) => ({ type: 'object', properties, required: Object.keys(properties) });
const text = (words) => ({ content: [{ type: 'text', text: words }] });
const a_string = { type: 'string' };
const who = { customer: a_string, amount: { type: 'integer' } };
const read = { annotations: { readOnlyHint: true } };

const tools = {
  charge: [{ ...object(who), properties: { ...who, note: a_string } }, (args) =>
    text(`charged: ${change({ tool: 'charge', ...args })}`)],
  charge_structured: [object(who), (args) => {
    const made = { id: change({ tool: 'charge_structured', ...args }), ...args };
    return { ...text(JSON.stringify(made)), structuredContent: made };
  }, { outputSchema: fromJsonSchema(object({ id: a_string, ...who })) }],
  get_charges: [object({}), () => text(existsSync(WORLD) ? readFileSync(WORLD, 'utf8') : ''), read],
  slow_charge: [object({ ...who, until: a_string }), async ({ until, ...args }) => {
    const made = change({ tool: 'slow_charge', ...args });
    while (!existsSync(until)) await pause(10);
    return text(`charged slowly: ${made}`);
  }],
  die_after_charge: [object(who), (args) => {
    change({ tool: 'die_after_charge', ...args });
    process.kill(process.pid, 'SIGKILL');
  }],
  append_note: [object({ note: a_string }), (args) => text(`appended: ${change({ tool: 'append_note', ...args })}`)],
  big_result: [object({ megabytes: { type: 'integer' } }), ({ megabytes }) => text('x'.repeat(megabytes << 20)), read],
  charge_if_confirmed: [object(who), (args, { mcpReq }) => {
    const said = acceptedContent(mcpReq.inputResponses, 'confirmation');
    if (!said) {
      const question = { message: `Charge ${args.customer}?`, requestedSchema: object({ confirm: { type: 'boolean' } }) };
      return inputRequired({ inputRequests: { confirmation: inputRequired.elicit(question) } });
    }
    return said.confirm ? text(`charged: ${change({ tool: 'charge_if_confirmed', ...args })}`) : text('not charged');
  }],
};

function charging() {
  const server = new McpServer({ name: 'charging', version: '1.0.0' }, { capabilities: { tools: {} } });
  for (const [name, [schema, tool, more]] of Object.entries(tools)) {
    server.registerTool(name, { description: name, inputSchema: fromJsonSchema(schema), ...more }, tool);
  }
  return server;
}

if (process.argv[2] === 'http') {
  const http = createServer(toNodeHandler(createMcpHandler(charging)));
  http.listen(0, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
} else {
  serveStdio(charging);
}
