// A reference server for the conformance suite, over HTTP and for both eras, with the official TypeScript SDK.
//
// usage: everything.mjs            prints `listening PORT` and serves `/mcp` on loopback
//
// Names of tools, prompts and resources, and the words in their answers, are those that the suite looks for.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const require = createRequire(`${process.env.SEMEL_PEERS}/package.json`);
const {
  acceptedContent, classifyInboundRequest, createMcpHandler, createRequestStateCodec, fromJsonSchema, inputRequired,
  isInitializeRequest, McpServer, ResourceTemplate, CLIENT_CAPABILITIES_META_KEY,
} = require('@modelcontextprotocol/server');
const { NodeStreamableHTTPServerTransport, toNodeHandler } = require('@modelcontextprotocol/node');

// One red pixel, and one sample of silence.
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const SILENCE = 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA==';

const text = (words) => ({ content: [{ type: 'text', text: words }] });
const object = (properties = {}, required = Object.keys(properties)) => ({ type: 'object', properties, required });
const ask = (message, properties) => inputRequired.elicit({ message, requestedSchema: object(properties) });
const sample = (words) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: words } }], maxTokens: 50 });
const a_string = { type: 'string' };

const states = createRequestStateCodec({ key: crypto.getRandomValues(new Uint8Array(32)) });
const sealed = (content) => states.mint({ ...content, nonce: randomUUID() });

/** Asks the client of a 2025 connection, and tells what it said. */
const relay = async (context, method, params) => {
  const said = await context.mcpReq.send({ method, params });
  return text(`answer: action=${said.action ?? 'none'} content=${JSON.stringify(said.content ?? {})}`);
};

const plain = {
  test_simple_text: () => text('This is a simple text response for testing.'),
  test_image_content: () => ({ content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] }),
  test_audio_content: () => ({ content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] }),
  test_embedded_resource: () => ({ content: [embedded('test://embedded-resource', 'text/plain', 'embedded')] }),
  test_multiple_content_types: () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PIXEL, mimeType: 'image/png' },
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  }),
  test_error_handling: () => {
    throw new Error('This tool intentionally returns an error for testing');
  },
  test_streaming_elicitation: () => text('the stream has a result and no requests'),
  test_logging_tool: async (_, context) => {
    await context.mcpReq.log('info', 'seen only by whoever asked for a log level');
    return text('logged');
  },
  test_tool_with_logging: async (_, context) => {
    for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
      await context.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
    }
    return text('Tool with logging executed successfully');
  },
  test_tool_with_progress: async (_, context) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken, progress, total: 100, message: `Completed step ${progress} of 100` };
      await context.mcpReq.notify({ method: 'notifications/progress', params });
    }
    return text(String(progressToken));
  },
  test_reconnection: async (_, context) => {
    sessions.get(context.sessionId)?.closeSSEStream(context.mcpReq.id);
    // The suite wants a client that comes back, so there has to be a while to come back in.
    await new Promise((resolve) => setTimeout(resolve, 100));
    return text('Reconnection test completed successfully');
  },
  test_trigger_tool_change: () => (modern.notify.toolsChanged(), text('tools changed')),
  test_trigger_prompt_change: () => (modern.notify.promptsChanged(), text('prompts changed')),
  test_elicitation_sep1034_defaults: (_, context) =>
    relay(context, 'elicitation/create', {
      message: 'Please review the defaults',
      requestedSchema: object({
        name: { type: 'string', default: 'John Doe' },
        age: { type: 'integer', default: 30 },
        score: { type: 'number', default: 95.5 },
        status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
        verified: { type: 'boolean', default: true },
      }, []),
    }),
  test_elicitation_sep1330_enums: (_, context) => {
    const options = ['option1', 'option2', 'option3'];
    const titled = [1, 2, 3].map((n) => ({ const: `value${n}`, title: `Option ${n}` }));
    return relay(context, 'elicitation/create', {
      message: 'Please choose',
      requestedSchema: object({
        untitledSingle: { type: 'string', enum: options },
        titledSingle: { type: 'string', oneOf: titled },
        legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
        untitledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { type: 'string', enum: options } },
        titledMulti: { type: 'array', minItems: 1, maxItems: 3, items: { anyOf: titled } },
      }, []),
    });
  },
};

/** Tools that ask for input before they answer, in the manner of 2026-07-28. */
const asking = {
  test_missing_capability: (_, { mcpReq }) =>
    mcpReq.inputResponses?.llm_answer ? text('sampled') : inputRequired({ inputRequests: { llm_answer: sample('ping') } }),
  test_input_required_result_elicitation: (_, { mcpReq }) => {
    const name = acceptedContent(mcpReq.inputResponses, 'user_name')?.name;
    return typeof name === 'string'
      ? text(`Hello, ${name}!`)
      : inputRequired({ inputRequests: { user_name: ask('What is your name?', { name: a_string }) } });
  },
  test_input_required_result_sampling: (_, { mcpReq }) => {
    const said = mcpReq.inputResponses?.capital_question;
    return said
      ? text(`Sampling response: ${said.content?.text}`)
      : inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?') } });
  },
  test_input_required_result_list_roots: (_, { mcpReq }) => {
    const roots = mcpReq.inputResponses?.client_roots?.roots;
    return Array.isArray(roots)
      ? text(`${roots.length} root(s): ${roots.map((root) => root.uri).join(', ')}`)
      : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
  },
  test_input_required_result_request_state: async (_, { mcpReq }) =>
    mcpReq.requestState() && acceptedContent(mcpReq.inputResponses, 'confirm')
      ? text('state-ok')
      : inputRequired({
          inputRequests: { confirm: ask('Please confirm', { ok: { type: 'boolean' } }) },
          requestState: await sealed({}),
        }),
  test_input_required_result_tampered_state: (...call) => asking.test_input_required_result_request_state(...call),
  test_input_required_result_multiple_inputs: async (_, { mcpReq }) => {
    const { greeting, client_roots } = mcpReq.inputResponses ?? {};
    const name = acceptedContent(mcpReq.inputResponses, 'user_name')?.name;
    return name && greeting && client_roots
      ? text(`${greeting.content?.text} ${name}, ${client_roots.roots?.length} root(s)`)
      : inputRequired({
          inputRequests: {
            user_name: ask('What is your name?', { name: a_string }),
            greeting: sample('Generate a greeting'),
            client_roots: inputRequired.listRoots(),
          },
          requestState: await sealed({}),
        });
  },
  test_input_required_result_multi_round: async (_, { mcpReq }) => {
    const before = mcpReq.requestState() ?? { round: 0 };
    const round = before.round + 1;
    if (round === 3) {
      return text(`${before.name} likes ${acceptedContent(mcpReq.inputResponses, 'step2')?.color}`);
    }
    const name = acceptedContent(mcpReq.inputResponses, 'step1')?.name;
    const question = round === 1 ? { name: a_string } : { color: a_string };
    return inputRequired({
      inputRequests: { [`step${round}`]: ask(`Step ${round}`, question) },
      requestState: await sealed({ round, name }),
    });
  },
  test_input_required_result_capabilities: (_, { mcpReq }) => {
    const offered = mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const inputRequests = {
      ...(offered.elicitation && { user_name: ask('What is your name?', { name: a_string }) }),
      ...(offered.sampling && { greeting: sample('Generate a greeting') }),
      ...(offered.roots && { client_roots: inputRequired.listRoots() }),
    };
    return mcpReq.inputResponses || !Object.keys(inputRequests).length ? text('done') : inputRequired({ inputRequests });
  },
};

/** Tools with arguments: their schema, and what they do. */
const shaped = {
  test_sampling: [object({ prompt: a_string }), ({ prompt }, context) =>
    relay(context, 'sampling/createMessage', {
      messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
      maxTokens: 100,
    })],
  test_elicitation: [object({ message: a_string }), ({ message }, context) =>
    relay(context, 'elicitation/create', { message, requestedSchema: object({ response: a_string }) })],
  test_x_mcp_header: [
    { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' }, level: { type: 'integer' } } },
    ({ region }) => text(`region=${region}`)],
  json_schema_2020_12_tool: [{
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: a_string, city: a_string } } },
    properties: {
      name: a_string,
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: a_string,
      email: a_string,
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
  }, (args) => text(JSON.stringify(args))],
};

function embedded(uri, mimeType, content) {
  return { type: 'resource', resource: { uri, mimeType, text: content } };
}

function resources(server) {
  const fixed = (name, mimeType, content) => {
    const uri = `test://${name}`;
    const about = { title: name, description: `the resource ${name}`, mimeType };
    server.registerResource(name, uri, about, () => ({ contents: [{ uri, mimeType, ...content }] }));
  };
  fixed('static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  fixed('static-binary', 'image/png', { blob: PIXEL });
  fixed('watched-resource', 'text/plain', { text: 'watched' });
  const template = new ResourceTemplate('test://template/{id}/data', { list: undefined });
  const about = { title: 'template', description: 'a template', mimeType: 'application/json' };
  server.registerResource('template', template, about, (uri, { id }) => ({
    contents: [{ uri: String(uri), mimeType: 'application/json', text: JSON.stringify({ id, data: `Data for ID: ${id}` }) }],
  }));
  server.server.setRequestHandler('resources/subscribe', () => ({}));
  server.server.setRequestHandler('resources/unsubscribe', () => ({}));
}

function prompts(server) {
  const says = (...content) => ({ messages: content.map((part) => ({ role: 'user', content: part })) });
  const words = (content) => ({ type: 'text', text: content });
  const prompt = (name, argsSchema, answer) =>
    server.registerPrompt(name, { description: name, ...(argsSchema && { argsSchema: fromJsonSchema(argsSchema) }) }, answer);
  prompt('test_simple_prompt', null, () => says(words('This is a simple prompt for testing.')));
  prompt('test_prompt_with_arguments', object({ arg1: a_string, arg2: a_string }), ({ arg1, arg2 }) =>
    says(words(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)));
  prompt('test_prompt_with_embedded_resource', object({ resourceUri: a_string }), ({ resourceUri }) =>
    says(embedded(resourceUri, 'text/plain', 'embedded'), words('Please process the resource above.')));
  prompt('test_prompt_with_image', null, () =>
    says({ type: 'image', data: PIXEL, mimeType: 'image/png' }, words('Please look at the image above.')));
  prompt('test_input_required_result_prompt', null, ({ mcpReq }) => {
    const context = acceptedContent(mcpReq.inputResponses, 'user_context')?.context;
    return context
      ? says(words(`Use the following context: ${context}`))
      : inputRequired({ inputRequests: { user_context: ask('Which context?', { context: a_string }) } });
  });
}

function everything() {
  const changing = { listChanged: true };
  const server = new McpServer({ name: 'everything', version: '1.0.0' }, {
    capabilities: {
      tools: changing, resources: { subscribe: true, ...changing }, prompts: changing, logging: {}, completions: {},
    },
    requestState: { verify: states.verify },
  });
  for (const [name, tool] of Object.entries({ ...plain, ...asking })) {
    server.registerTool(name, { description: name, inputSchema: fromJsonSchema(object()) }, tool);
  }
  for (const [name, [schema, tool]] of Object.entries(shaped)) {
    server.registerTool(name, { description: name, inputSchema: fromJsonSchema(schema) }, tool);
  }
  resources(server);
  prompts(server);
  server.server.setRequestHandler('logging/setLevel', () => ({}));
  server.server.setRequestHandler('completion/complete', () => ({ completion: { values: [], total: 0, hasMore: false } }));
  return server;
}

/** Events of all sessions, for clients that come back with `Last-Event-ID`. */
const events = {
  kept: [],
  async storeEvent(stream, message) {
    const id = `${stream}::${this.kept.length}`;
    this.kept.push({ id, stream, message });
    return id;
  },
  async replayEventsAfter(last, { send }) {
    const [stream, place] = last.split('::');
    const missed = this.kept.slice(Number(place) + 1).filter((event) => event.stream === stream);
    for (const { id, message } of missed) {
      if (Object.keys(message).length) await send(id, message);
    }
    return stream;
  },
};

const sessions = new Map();
const modern = createMcpHandler(everything, {});
const serve_modern = toNodeHandler(modern);

async function session_of(request, body) {
  const id = request.headers['mcp-session-id'];
  if (id) return sessions.get(id);
  if (!isInitializeRequest(body)) return undefined;
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: events,
    retryInterval: 500,
    onsessioninitialized: (fresh) => void sessions.set(fresh, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await everything().connect(transport);
  return transport;
}

async function serve(request, response) {
  const refuse = (status, message) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }));
  };
  const local = (host) => /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host);
  const origin = request.headers.origin;
  if (!local(request.headers.host ?? '') || (origin && !local(origin.replace(/^https?:\/\//, '')))) {
    return refuse(403, 'only callers on this machine');
  }
  let body;
  if (request.method === 'POST') {
    const parts = [];
    for await (const part of request) parts.push(part);
    try {
      body = JSON.parse(Buffer.concat(parts));
    } catch {
      return refuse(400, 'not JSON');
    }
    const header = (name) => request.headers[name];
    const era = classifyInboundRequest({
      httpMethod: 'POST',
      protocolVersionHeader: header('mcp-protocol-version'),
      mcpMethodHeader: header('mcp-method'),
      body,
    });
    if (era.kind !== 'legacy') return serve_modern(request, response, body);
  }
  const session = await session_of(request, body);
  if (session) return session.handleRequest(request, response, body);
  return request.headers['mcp-session-id'] ? refuse(404, 'no such session') : refuse(400, 'a session is needed');
}

const http = createServer((request, response) =>
  serve(request, response).catch((error) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(500).end();
  }));
http.listen(0, '127.0.0.1', () => console.log(`listening ${http.address().port}`));
