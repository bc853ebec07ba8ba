// Starts the local chain and the local payment chains of `svc serve` for development. Knows nothing
// of how the service is built.
import type { Config } from "../config/config.ts";
import { errorText } from "../core/fields.ts";
import { type Devnet, type DevnetOptions, startDevnet, withDevnet } from "../devnet/devnet.ts";
import { isLoopback } from "../devnet/payments/wallets.ts";
import { realRuntime } from "../runtime.ts";
import { PROGRAM, refuse } from "./command.ts";

/** The local chain of a development instance. */
export interface LocalChain {
  /** Adds the local chain to a configuration. */
  readonly complete: (config: Config) => Config;
  /** Lines that explain how to pay; empty if nothing can be paid. */
  readonly payingLines: (base: string) => string;
  readonly close: () => Promise<unknown>;
}

/** Starts the local chain, and local payments if the service listens on loopback only. */
export async function startLocal(
  config: Config,
  { onProgress, onProblem }: Required<Pick<DevnetOptions, "onProgress" | "onProblem">>,
): Promise<LocalChain> {
  const starting = startDevnet({ nodes: config.devnetNodes, onProgress, onProblem });
  const paying = startPaying(config, starting, onProgress);
  const devnet: Devnet = await starting.catch((error: unknown) =>
    refuse(`svc: ${errorText(error)}`),
  );
  const payments = await paying;
  return {
    complete: (next) => payments?.into(withDevnet(next, devnet)) ?? withDevnet(next, devnet),
    payingLines: (base) => payments?.lines(base, devnet.chain.chainName) ?? "",
    close: () => Promise.all([payments?.close(), devnet.close()]),
  };
}

/**
 * Starts local payments; null = not enabled. Imported lazily, so that instances without a local
 * chain do not load it.
 */
async function startPaying(
  config: Config,
  devnet: Promise<Devnet>,
  onProgress: (line: string) => void,
) {
  if (config.hosted === null) return null;
  const { host, publicUrl } = config.server;
  const reached = [host, ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])].find(
    (name) => !isLoopback(name),
  );
  if (reached !== undefined) {
    onProgress(
      `no local payments: others may reach ${reached}, and local money is worth nothing. They ` +
        "come with server.host 127.0.0.1 and no other public_url",
    );
    return null;
  }
  try {
    const [local, { leaveLocalRails }] = await Promise.all([
      import("../devnet/payments/local.ts"),
      import("../devnet/payments/local-rails.ts"),
    ]);
    const chains = await local.startLocalPayments({ devnet, runtime: realRuntime, onProgress });
    const forget = leaveLocalRails(config.dataDir, chains.rails);
    return {
      into: (base: Config) => local.withLocalPayments(base, chains),
      lines: (base: string, chain: string) => local.payingLines(PROGRAM, base, chain, chains),
      close: async () => {
        forget();
        await chains.close();
      },
    };
  } catch (error) {
    onProgress(`no local payments: ${String(error)}`);
    return null;
  }
}
