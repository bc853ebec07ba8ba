// Outcomes of routed calls for tests of what stands above the router.
import type { Outcome } from "../../src/upstream/engine/answer.ts";

const HEAD = '{"jsonrpc":"2.0","id":8765432187654321,"result":';

/** A provider's answer with this JSON as its result, under an id that no caller has. */
export function resultOutcome(json: string): Outcome {
  return {
    kind: "result",
    body: Buffer.from(`${HEAD}${json}}`),
    start: HEAD.length,
    end: HEAD.length + Buffer.byteLength(json),
    idAt: HEAD.indexOf("8"),
  };
}
