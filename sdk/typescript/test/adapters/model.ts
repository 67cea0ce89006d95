import { MockLanguageModelV4 } from "ai/test";

const usage = { inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 }, outputTokens: { total: 1, text: 1, reasoning: 0 } };
type Generated = Awaited<ReturnType<MockLanguageModelV4["doGenerate"]>>;

/** A model that says these things, one after the other: tool calls for a number, text for a text. */
export function scripted(...steps: (number | string)[]): MockLanguageModelV4 {
  let calls = 0;
  const content = (step: number | string): Generated["content"] =>
    typeof step === "string"
      ? [{ type: "text", text: step }]
      : Array.from({ length: step }, () => ({
          type: "tool-call" as const,
          toolCallId: `call_${++calls}`,
          toolName: "charge",
          input: '{"customer":"ann"}',
        }));
  return new MockLanguageModelV4({
    doGenerate: steps.map((step) => ({
      content: content(step),
      finishReason: { unified: typeof step === "string" ? ("stop" as const) : ("tool-calls" as const), raw: undefined },
      usage,
      warnings: [],
    })),
  });
}
