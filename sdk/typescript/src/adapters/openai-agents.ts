import type { RunContext } from "@openai/agents";
import { call, replyOrWords, state } from "../call.js";

export interface GuardOptions<CONTEXT> {
  /** The run of a call: a conversation's id, for one. Unless given, it is that of `run()`. */
  run?: string | ((context: RunContext<CONTEXT>) => string | undefined);
}

interface Definition {
  name?: string;
  execute: (...args: any[]) => unknown;
  needsApproval?: boolean | ((...args: any[]) => Promise<boolean>);
  errorFunction?: ((...args: any[]) => unknown) | null;
}

/**
 * Guards a tool of the OpenAI Agents SDK, before it is made: `tool(guard({ name, parameters, execute, … }))`.
 * A call that would meet a doubt needs approval. Approved, it is answered from the record once the doubt is
 * decided; the tool does not run.
 */
export function guard<DEFINITION extends Definition, CONTEXT = any>(definition: DEFINITION, { run }: GuardOptions<CONTEXT> = {}): DEFINITION {
  const { execute, needsApproval, errorFunction } = definition;
  const name = definition.name ?? execute.name;
  if (!name) throw new TypeError("guard() needs the name of the tool");
  const runOf = (context: RunContext<CONTEXT>) => (typeof run === "function" ? run(context) : run);
  const guarded: Definition = {
    name,
    execute: (input: unknown, context: RunContext<CONTEXT>, details?: { toolCall?: { callId?: string } }) =>
      call(name, input, () => execute(input, context, details), { run: runOf(context), callId: details?.toolCall?.callId, load: replyOrWords }),
    needsApproval: async (context: RunContext<CONTEXT>, input: unknown, callId: string) =>
      (typeof needsApproval === "function" ? await needsApproval(context, input, callId) : needsApproval === true) ||
      (await state(name, input, { run: runOf(context) })) === "hold",
    // The framework's own words end in "Please try again."
    errorFunction: errorFunction === undefined ? (_: unknown, error: unknown) => (error instanceof Error ? error.message : String(error)) : errorFunction,
  };
  return { ...definition, ...guarded };
}
