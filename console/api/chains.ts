// Reads how all chains are, by one request a chain.

import type { Client, Result } from "./client.ts";
import type { AnswerOf } from "./contract-types.ts";

/** The metrics of every chain; the first failure is the failure of the whole. */
export async function readChains(
  client: Client,
): Promise<Result<readonly AnswerOf<"GET /api/metrics/{chain}">[]>> {
  const chains = await client.call("GET /api/chains", {});
  if (chains.kind === "failed") return chains;
  const metrics = await Promise.all(
    chains.body.chains.map(({ chain_name: chain }) =>
      client.call("GET /api/metrics/{chain}", { params: { chain } }),
    ),
  );
  const failed = metrics.find((each) => each.kind === "failed");
  if (failed !== undefined) return failed;
  return { kind: "ok", body: metrics.flatMap((each) => (each.kind === "ok" ? [each.body] : [])) };
}
