import { Command, interrupt, isGraphInterrupt } from "@langchain/langgraph";
import { createMiddleware, ToolMessage } from "langchain";
import { call, replyOrWords, unlessDecided } from "../call.js";
import { resolve } from "../effect.js";
import { InDoubt, SemelError } from "../errors.js";

/** A person's answer to the interrupt: `new Command({ resume: { ...question, verdict, reason } })`. */
export interface Ruling {
  effect_id: string;
  attempt: number;
  verdict: "applied" | "not_applied";
  reason: string;
  reply?: unknown;
}

/** The value of the interrupt that a doubt raises. */
export interface Question {
  effect_id: string;
  attempt: number;
  tool: string;
  args: Record<string, unknown>;
  message: string;
}

/**
 * Guards all tools of an agent: `createAgent({ model, tools, checkpointer, middleware: [guard()] })`.
 * The run is the thread. A doubt interrupts the graph; resumed with a `Ruling`, the tool is answered from the
 * record, or runs if the ruling is that it never did.
 */
export function guard({ run }: { run?: string } = {}) {
  return createMiddleware({
    name: "semel",
    wrapToolCall: async (request, handler) => {
      const { name, args, id = "" } = request.toolCall;
      for (;;) {
        try {
          return await call<ToolMessage | Command>(name, args, () => handler(request), {
            run: run ?? request.runtime.configurable?.thread_id,
            callId: id,
            pause: isGraphInterrupt,
            // The framework found the arguments wrong, so the tool was not called.
            refused: (error) => (error as Error)?.name === "ToolInvocationError",
            load: (reply, answer) => revived(replyOrWords(reply, answer), name, id),
          });
        } catch (error) {
          if (!(error instanceof SemelError)) throw error;
          const { effect_id, message } = error;
          if (!(error instanceof InDoubt) || !effect_id) {
            return new ToolMessage({ name, content: message, tool_call_id: id, status: "error" });
          }
          const attempt = Number(error.answer.attempt ?? 0);
          const ruling = interrupt<Question, Ruling | undefined>({ effect_id, attempt, tool: name, args, message });
          // The framework gives an answer again when it runs the node again: "it never happened", said of one attempt,
          // must not decide about the next. Without an answer, the person has decided elsewhere.
          const isOfThis = ruling?.effect_id === effect_id && ruling.attempt === attempt;
          if (ruling?.verdict && isOfThis) await unlessDecided(resolve(effect_id, ruling.verdict, ruling.reason, ruling.reply));
        }
      }
    },
  });
}

/** A record as what the tool node takes, under the id of this call. */
function revived(reply: unknown, name: string, id: string): ToolMessage | Command {
  const back = JSON.parse(JSON.stringify(reply), (_, value) =>
    value?.lc === 1 && value.id?.at(-1) === "ToolMessage" ? new ToolMessage({ ...value.kwargs, tool_call_id: id }) : value,
  );
  if (ToolMessage.isInstance(back)) return back as ToolMessage;
  if (back?.lg_name === "Command") return new Command(back);
  // A person brought it, or a probe.
  return new ToolMessage({ name, content: typeof back === "string" ? back : JSON.stringify(back), tool_call_id: id });
}
