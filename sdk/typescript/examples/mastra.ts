// Mastra: a tool whose answer is lost runs once; the next call asks for approval.
import { Agent } from "@mastra/core/agent";
import type { MastraModelConfig } from "@mastra/core/llm";
import { createTool } from "@mastra/core/tools";
import { guard } from "semel/mastra";
import { z } from "zod";

export function agentOf(model: MastraModelConfig, charge: (customer: string) => Promise<{ id: string }>): Agent {
  const tool = createTool({
    id: "charge",
    description: "Charges a customer.",
    inputSchema: z.object({ customer: z.string() }),
    execute: ({ customer }) => charge(customer),
  });
  return new Agent({ id: "billing", name: "billing", instructions: "Charge.", model, tools: guard({ charge: tool }) });
}
