import { call, replyOrWords, unlessDecided } from "../call.js";
import { resolve } from "../effect.js";
import { InDoubt } from "../errors.js";

/** An `McpServer` of `@modelcontextprotocol/sdk` (version 1) or of `@modelcontextprotocol/server` (version 2). */
interface AnyServer {
  registerTool(...args: any[]): unknown;
  server: {
    getClientCapabilities(): { elicitation?: unknown } | undefined;
    elicitInput(params: any): Promise<{ action: string; content?: Record<string, unknown> }>;
  };
}

interface Meta {
  [name: string]: unknown;
}

interface CallToolResult {
  content: { type: string; text?: string }[];
  isError?: boolean;
}

/**
 * Guards all tools that are registered from now on: `const server = guard(new McpServer(…))`.
 * The run is the one that the client names in `_meta["dev.semel/run-id"]`, since a session does not outlive a
 * restart. In doubt, a client that can ask its user (elicitation) asks; the tool does not run.
 */
export function guard<SERVER extends AnyServer>(server: SERVER, { run }: { run?: string } = {}): SERVER {
  const register = server.registerTool.bind(server) as (name: string, config: unknown, handler: unknown) => unknown;
  const guarded = (name: string, config: { inputSchema?: unknown }, handler: (...args: unknown[]) => unknown) =>
    register(name, config, async (...args: unknown[]) => {
      const input = config.inputSchema ? args[0] : {};
      const extra = args.at(-1) as { _meta?: Meta; mcpReq?: { _meta?: Meta } }; // the second is of version 2
      const _meta = extra._meta ?? extra.mcpReq?._meta ?? {};
      const options = { run: run ?? (_meta["dev.semel/run-id"] as string | undefined), callId: _meta["claudecode/toolUseId"] as string | undefined };
      for (;;) {
        try {
          return await call(name, input, () => handled(handler, args), { ...options, refused: [ToolFailed], load: resultOf });
        } catch (error) {
          if (error instanceof ToolFailed) return error.result;
          if (!(error instanceof InDoubt) || !(await ruled(server, error))) throw error;
        }
      }
    });
  return Object.assign(server, { registerTool: guarded });
}

/** The tool's author says that it failed. That is a refusal, and no doubt. */
class ToolFailed extends Error {
  constructor(readonly result: CallToolResult) {
    super(result.content.map(({ type, text }) => text ?? type).join(" "));
  }
}

async function handled(handler: (...args: unknown[]) => unknown, args: unknown[]): Promise<CallToolResult> {
  const result = (await handler(...args)) as CallToolResult;
  if (result.isError) throw new ToolFailed(result);
  return result;
}

/** Asks the user of the client. False: nobody was asked, or nobody knows. */
async function ruled({ server }: AnyServer, { effect_id, message }: InDoubt): Promise<boolean> {
  if (!effect_id || !server.getClientCapabilities()?.elicitation) return false;
  const { action, content } = await server.elicitInput({
    message: `${message}\nDid it happen? Look before you answer.`,
    requestedSchema: {
      type: "object",
      properties: {
        happened: { type: "boolean", title: "It happened" },
        reason: { type: "string", title: "How do you know?" },
      },
      required: ["happened", "reason"],
    },
  });
  if (action !== "accept" || typeof content?.happened !== "boolean") return false;
  await unlessDecided(resolve(effect_id, content.happened ? "applied" : "not_applied", String(content.reason)));
  return true;
}

function resultOf(reply: unknown, answer: Parameters<typeof replyOrWords>[1]): CallToolResult {
  if (Array.isArray((reply as CallToolResult | null)?.content)) return reply as CallToolResult;
  const words: unknown = replyOrWords(reply, answer);
  return { content: [{ type: "text", text: typeof words === "string" ? words : JSON.stringify(words) }] };
}
