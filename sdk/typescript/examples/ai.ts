// AI SDK: a tool whose answer is lost runs once; the next call waits for a person.
import { generateText, isStepCount, type LanguageModel, type ModelMessage, tool } from "ai";
import { guard } from "semel/ai";
import { z } from "zod";

export function turn(model: LanguageModel, messages: ModelMessage[], charge: (customer: string) => Promise<unknown>) {
  const tools = {
    charge: tool({ inputSchema: z.object({ customer: z.string() }), execute: ({ customer }) => charge(customer) }),
  };
  return generateText({ model, messages, ...guard(tools, { run: "order-42" }), stopWhen: isStepCount(5) });
}
