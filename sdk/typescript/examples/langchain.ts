// LangChain: a tool whose answer is lost runs once; the graph is interrupted until a person decides.
import type { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { MemorySaver } from "@langchain/langgraph";
import { createAgent, tool } from "langchain";
import { guard } from "semel/langchain";
import { z } from "zod";

export function agentOf(model: BaseChatModel, charge: (customer: string) => Promise<unknown>) {
  const charging = tool(({ customer }) => charge(customer), {
    name: "charge",
    description: "Charges a customer.",
    schema: z.object({ customer: z.string() }),
  });
  return createAgent({ model, tools: [charging], middleware: [guard()], checkpointer: new MemorySaver() });
}
