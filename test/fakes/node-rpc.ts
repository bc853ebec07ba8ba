// A node of a test's own, asked for as long as it takes: the way that the service asks it gives up
// after seconds, and a busy machine needs them.
import { z } from "zod";

const shape = z.object({
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
});

/** Asks the node at a URL; throws when it answers with an error. */
export function rpcOf(
  url: string,
): (method: string, ...params: readonly unknown[]) => Promise<unknown> {
  return async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    const { result, error } = shape.parse(await response.json());
    if (error !== undefined) throw new Error(`${method}: ${error.message}`);
    return result;
  };
}
