import type { GenericToolApprovalFunction, ToolSet } from "ai";
import { call, replyOrWords, state } from "../call.js";
import { refuseGenerator } from "../once.js";

/**
 * Guards the tools of the AI SDK: `generateText({ model, ...guard(tools, { run: "order-42" }), … })`.
 * A call that would meet a doubt waits for a person, as one that needs approval does. Approved, it is answered from
 * the record once the doubt is decided; the tool does not run.
 */
export function guard<TOOLS extends ToolSet>(tools: TOOLS, { run }: { run?: string } = {}): {
  tools: TOOLS;
  toolApproval: GenericToolApprovalFunction<any, any, any>;
} {
  const guarded = Object.entries(tools).map(([name, tool]) => {
    const { execute } = tool;
    if (!execute) return [name, tool]; // it runs in the browser, or at the model's provider
    refuseGenerator(name, execute);
    const once: typeof execute = (input, options) => call(name, input, () => execute(input, options), { run, callId: options.toolCallId, load: replyOrWords });
    return [name, { ...tool, execute: once }];
  });
  return {
    tools: Object.fromEntries(guarded) as TOOLS,
    toolApproval: async ({ toolCall: { toolName, input } }) => {
      if (!tools[toolName]?.execute || (await state(toolName, input, { run })) !== "hold") return undefined;
      return { type: "user-approval", reason: "An earlier call may have done this already. Decide about that one first (semel ledger)." };
    },
  };
}
