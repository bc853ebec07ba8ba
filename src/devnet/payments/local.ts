// The payment chains of `npm start`: a Tempo chain of its own, and the token on the local chain
// that runs anyway; and the rails on them, put into a configuration. The money on them is worth
// nothing, and their keys are known to everybody: never for an instance that others reach.
import { z } from "zod";
import type { Config } from "../../config/config.ts";
import type { RailSettings } from "../../payments/rails/rails.ts";
import type { Runtime } from "../../runtime.ts";
import type { Devnet, DevnetProvider } from "../devnet.ts";
import { startTempoChain, TEMPO_CHAIN_ID, TEMPO_TOKEN, type TempoChain } from "./chains.ts";
import { deployToken, type NodeCall } from "./token.ts";
import { RECIPIENT, SESSION, SETTLEMENT } from "./wallets.ts";

/** Running local payment chains. */
export interface LocalPayments {
  readonly rails: readonly RailSettings[];
  /** Where wallets reach the Tempo chain; null = it did not start. */
  readonly tempoUrl: string | null;
  /** Where wallets reach the chain with the token; null = it has none. */
  readonly evmUrl: string | null;
  /** True = the channels of the Tempo chain are a stand-in for development. */
  readonly standIn: boolean;
  /** Ends what was started here. */
  readonly close: () => Promise<void>;
}

/** What they are started with. */
export interface LocalPaymentsOptions {
  /** The local chain; it may be starting still. */
  readonly devnet: Promise<Devnet>;
  readonly runtime: Runtime;
  readonly onProgress: (line: string) => void;
}

const RPC_TIMEOUT_MS = 5_000;
const MAX_TRIES = 100;
const PAUSE_MS = 50;
const LOW_GAS_WEI = 10n ** 16n;
/** Gas costs nothing here. */
const MAX_GAS_WEI = 10n ** 19n;
const NANO_PER_USD = 1_000_000_000n;
const SETTLE_MS = 600_000;

const Answer = z.object({
  result: z.unknown().optional(),
  error: z.object({ message: z.string() }).optional(),
});

/** Starts both side by side. What does not start is said, and the rest serves without it. */
export async function startLocalPayments({
  devnet,
  runtime,
  onProgress,
}: LocalPaymentsOptions): Promise<LocalPayments> {
  const failed = (what: string) => (error: unknown) => {
    onProgress(
      `${what}: ${error instanceof Error ? error.message : String(error)}. Payments by it are ` +
        "not offered",
    );
    return null;
  };
  const [tempo, evm] = await Promise.all([
    startTempoChain({ runtime, onProgress }).catch(failed("the local Tempo chain did not start")),
    devnet
      .then((chain) => evmRail(chain, runtime))
      .catch(failed("the local chain has no token to pay with")),
  ]);
  if (tempo?.standIn)
    onProgress(
      "payment channels on the local Tempo chain are a stand-in for development, not Tempo's own",
    );
  return {
    rails: [...(tempo === null ? [] : tempoRails(tempo)), ...(evm === null ? [] : [evm])],
    tempoUrl: tempo?.url ?? null,
    evmUrl: evm?.rpcUrl ?? null,
    standIn: tempo?.standIn ?? false,
    close: async () => {
      await tempo?.end();
    },
  };
}

/** The configuration with the local rails beside those that it has. */
export function withLocalPayments(config: Config, { rails }: LocalPayments): Config {
  const { hosted } = config;
  if (hosted === null || rails.length === 0) return config;
  const configured = hosted.payments.rails;
  const added = rails.filter(
    (rail) =>
      !configured.some((other) => other.kind === rail.kind && other.chainId === rail.chainId),
  );
  return {
    ...config,
    hosted: { ...hosted, payments: { ...hosted.payments, rails: [...configured, ...added] } },
  };
}

function tempoRails({ url }: TempoChain): readonly RailSettings[] {
  const token = { address: TEMPO_TOKEN, name: "", version: "" };
  const base = { rpcUrl: url, chainId: TEMPO_CHAIN_ID, token, confirmations: 0, local: true };
  const channels = {
    walletKey: SESSION.key,
    escrow: null,
    depositN: NANO_PER_USD,
    settleN: NANO_PER_USD / 2n,
    settleMs: SETTLE_MS,
  };
  return [
    { ...base, kind: "tempo", recipient: RECIPIENT.address, modes: ["pull", "push"] },
    { ...base, kind: "session", recipient: SESSION.address, ...channels },
  ];
}

/**
 * The token goes to the node that makes the blocks; the rail asks the last one, which is the least
 * likely to be killed to watch a failover.
 */
async function evmRail({ chain, providers }: Devnet, runtime: Runtime): Promise<RailSettings> {
  const [first] = providers;
  const last = providers.at(-1);
  if (first === undefined || last === undefined) throw new Error("it has no node");
  const token = await deployToken(nodeCallOf(first), runtime);
  await waitForToken(nodeCallOf(last), token.address, runtime);
  const rail = {
    rpcUrl: last.url,
    chainId: chain.chainId,
    token,
    recipient: RECIPIENT.address,
    confirmations: 0,
    local: true,
  };
  return {
    ...rail,
    kind: "evm",
    walletKey: SETTLEMENT.key,
    lowGasWei: LOW_GAS_WEI,
    maxGasWei: MAX_GAS_WEI,
  };
}

/** The other nodes make the block of the deployment a moment later. */
async function waitForToken(call: NodeCall, address: string, runtime: Runtime): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if ((await call("eth_getCode", address, "latest")) !== "0x") return;
    await new Promise<void>((resolve) => runtime.after(PAUSE_MS, resolve));
  }
  throw new Error("its nodes do not come to the block with the token");
}

function nodeCallOf({ id, url }: DevnetProvider): NodeCall {
  return async (method, ...params) => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const headers = { "content-type": "application/json" };
    const response = await fetch(url, {
      method: "POST",
      headers,
      body,
      signal: AbortSignal.timeout(RPC_TIMEOUT_MS),
    });
    const { result, error } = Answer.parse(await response.json());
    if (error !== undefined) throw new Error(`${id} refuses ${method}: ${error.message}`);
    return result;
  };
}
