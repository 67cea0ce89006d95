// Does what a plan says with the official TypeScript client, and prints what came back as one document.
//
// usage: client.mjs PLAN       as client.py; "sdk": 1 takes the older package, which knows the 2025 era alone
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.SEMEL_PEERS}/package.json`);
const plan = JSON.parse(process.argv[2]);
const old = plan.sdk === 1;

const { Client } = require(old ? '@modelcontextprotocol/sdk/client/index.js' : '@modelcontextprotocol/client');
const { StdioClientTransport } = require(old ? '@modelcontextprotocol/sdk/client/stdio.js' : '@modelcontextprotocol/client/stdio');
const { StreamableHTTPClientTransport } =
  require(old ? '@modelcontextprotocol/sdk/client/streamableHttp.js' : '@modelcontextprotocol/client');

function transport() {
  if (plan.server.url) return new StreamableHTTPClientTransport(new URL(plan.server.url));
  const [command, ...args] = plan.server.command;
  // The plans ask for results larger than the SDK's usual limit.
  return new StdioClientTransport({ command, args, env: process.env, maxBufferSize: 256 << 20 });
}

const mode = plan.mode === undefined || ['auto', 'legacy'].includes(plan.mode) ? plan.mode ?? 'auto' : { pin: plan.mode };
const client = new Client({ name: 'plan', version: '1' }, {
  capabilities: { elicitation: {} },
  ...(!old && { versionNegotiation: { mode } }),
});
const agree = () => ({ action: 'accept', content: { confirm: true } });
client.setRequestHandler(old ? require('@modelcontextprotocol/sdk/types.js').ElicitRequestSchema : 'elicitation/create', agree);

async function take(step) {
  if (Array.isArray(step)) return Promise.all(step.map(take));
  const progress = [];
  const onprogress = ({ message }) => progress.push(message);
  try {
    if (step.list) return await client.listTools();
    const call = { name: step.tool, arguments: step.arguments ?? {}, ...(step.meta && { _meta: step.meta }) };
    const result = await (old ? client.callTool(call, undefined, { onprogress }) : client.callTool(call, { onprogress }));
    return { ...result, progress };
  } catch (error) {
    return { error: { code: error.code, message: error.message } };
  }
}

await client.connect(transport());
const results = [];
for (const step of plan.steps) results.push(await take(step));
const version = old ? client.transport?.protocolVersion ?? client.transport?._protocolVersion : client.getNegotiatedProtocolVersion?.();
console.log(JSON.stringify({ version, results }));
await client.close();
