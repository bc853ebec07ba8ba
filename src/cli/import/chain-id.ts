// Asks providers for their chain where an imported file does not say it.
import { realRuntime } from "../../runtime.ts";
import { chainIdOf } from "../../upstream/probe/probe.ts";
import { ProbeTransports } from "../../upstream/probe/transports.ts";
import type { CommandInput } from "../command.ts";
import { endpointWith } from "../endpoint.ts";

const BOUNDS = {
  maxRequests: 1,
  pauseMs: 0,
  rateLimitMs: 500,
  timeoutMs: 5_000,
  totalMs: 15_000,
};

/** The chain id that a provider answers with; null = it does not answer. */
export async function findChainId(
  { url, ws_url, headers }: Readonly<Record<string, unknown>>,
  env: CommandInput["env"],
): Promise<number | null> {
  const provider = endpointWith({ url, ws_url, headers }, env);
  if (provider === null) return null;
  const transports = new ProbeTransports(realRuntime);
  try {
    return await chainIdOf(transports, provider, BOUNDS);
  } finally {
    await transports.close();
  }
}
