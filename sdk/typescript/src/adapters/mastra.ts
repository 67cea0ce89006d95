import type { Tool } from "@mastra/core/tools";
import { call, replyOrWords, state } from "../call.js";

/** Mastra's own key for the thread, in the request context. */
const THREAD = "mastra__threadId";

type AnyTool = Tool<any, any, any, any, any, any, any>;

export interface GuardOptions {
  /** The run of a call. Unless given, it is the thread that the request context names (MASTRA_THREAD_ID_KEY). */
  run?: string | ((requestContext: Record<string, unknown>) => string | undefined);
}

/**
 * Guards the tools of a Mastra agent: `new Agent({ tools: guard({ charge }), … })`.
 * A call that would meet a doubt asks for approval. Approved, it is answered from the record once the doubt is
 * decided; the tool does not run.
 */
export function guard<TOOLS extends Record<string, AnyTool>>(tools: TOOLS, options: GuardOptions = {}): TOOLS {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, guardOne(tool, options)])) as TOOLS;
}

function guardOne(tool: AnyTool, { run }: GuardOptions): AnyTool {
  const { execute, requireApproval } = tool;
  if (!execute) return tool;
  const runOf = (context: Record<string, unknown> = {}) =>
    typeof run === "function" ? run(context) : (run ?? (context[THREAD] as string | undefined));
  const guarded: Pick<AnyTool, "execute" | "requireApproval"> = {
    execute: async (input, context) => {
      const act = async () => {
        let paused = false;
        const result: unknown = await execute.call(tool, input, tellingOfPauses(context, () => (paused = true)));
        if (paused) throw new Paused(result);
        return result;
      };
      try {
        return await call(tool.id, input, act, {
          run: runOf(Object.fromEntries(context?.requestContext?.entries() ?? [])),
          callId: context?.agent?.toolCallId,
          pause: [Paused],
          load: replyOrWords,
        });
      } catch (error) {
        if (error instanceof Paused) return error.result;
        throw error;
      }
    },
    requireApproval: async (input, context) =>
      (typeof requireApproval === "function" ? await requireApproval(input, context) : requireApproval === true) ||
      (await state(tool.id, input, { run: runOf(context?.requestContext) })) === "hold",
  };
  return Object.assign(Object.create(Object.getPrototypeOf(tool) as object) as AnyTool, tool, guarded);
}

/** The tool has suspended itself. It returns as if it had acted, so nothing else would tell. */
class Paused extends Error {
  constructor(readonly result: unknown) {
    super("the tool waits to be resumed");
  }
}

/** The context of an execution, agents' and workflows', that tells of its `suspend`. */
function tellingOfPauses(context: any, paused: () => void): any {
  const telling = { ...context };
  for (const part of ["agent", "workflow"]) {
    const suspend = context?.[part]?.suspend as ((...args: unknown[]) => unknown) | undefined;
    if (!suspend) continue;
    telling[part] = {
      ...context[part],
      suspend: (...args: unknown[]) => {
        paused();
        return suspend(...args);
      },
    };
  }
  return telling;
}
