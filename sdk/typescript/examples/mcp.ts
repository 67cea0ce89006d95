// MCP: a tool whose answer is lost runs once; the client's user is asked, where the client can.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { guard } from "semel/mcp";
import { z } from "zod";

export function serverOf(charge: (customer: string) => Promise<CallToolResult>): McpServer {
  const server = guard(new McpServer({ name: "billing", version: "1.0.0" }));
  server.registerTool("charge", { inputSchema: { customer: z.string() } }, ({ customer }) => charge(customer));
  return server;
}
