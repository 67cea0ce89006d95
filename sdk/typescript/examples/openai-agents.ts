// OpenAI Agents: a tool whose answer is lost runs once; the next call needs approval.
import { Agent, type Model, tool } from "@openai/agents";
import { guard } from "semel/openai-agents";
import { z } from "zod";

export function agentOf(model: Model, charge: (customer: string) => Promise<unknown>) {
  const definition = {
    name: "charge",
    description: "Charges a customer.",
    parameters: z.object({ customer: z.string() }),
    execute: ({ customer }: { customer: string }) => charge(customer),
  };
  return new Agent({ name: "billing", model, tools: [tool(guard(definition, { run: "order-42" }))] });
}
