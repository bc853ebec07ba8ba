// Payments of `npm start`: starts a Tempo chain, deploys the token on the local chain, and adds
// rails for both to the configuration. Their money is worthless and their keys are public: never
// for an instance that other machines reach.
import type { Config } from "../../config/config.ts";
import { MPPX_COMMAND } from "../../core/billing/payment.ts";
import { errorText } from "../../core/fields.ts";
import type { RailSettings } from "../../payments/rails/rails.ts";
import { pause, type Runtime } from "../../runtime.ts";
import type { Devnet } from "../devnet.ts";
import { startTempoChain, TEMPO_CHAIN_ID, TEMPO_TOKEN, type TempoChain } from "./chains.ts";
import { deployToken, type NodeCall } from "./local-contracts.ts";
import { PAYER, RECIPIENT, SESSION, SETTLEMENT } from "./wallets.ts";

/** Running local payment chains. */
export interface LocalPayments {
  readonly rails: readonly RailSettings[];
  /** URL of the Tempo chain for wallets; null = it failed to start. */
  readonly tempoUrl: string | null;
  /** URL of the chain with the token for wallets; null = the token was not deployed. */
  readonly evmUrl: string | null;
  /** True = channels of the Tempo chain use a stand-in for development. */
  readonly standIn: boolean;
  /** Ends everything started here. */
  readonly close: () => Promise<void>;
}

export interface LocalPaymentsOptions {
  /** The local chain, which may still be starting. */
  readonly devnet: Promise<Devnet>;
  readonly runtime: Runtime;
  readonly onProgress: (line: string) => void;
}

const MAX_TRIES = 100;
const PAUSE_MS = 50;
const LOW_GAS_WEI = 10n ** 16n;
/** Far above any gas price: gas costs nothing here. */
const MAX_GAS_WEI = 10n ** 19n;
const NANO_PER_USD = 1_000_000_000n;
const SETTLE_MS = 600_000;

/** Starts both in parallel. Reports a chain that fails to start, and continues without it. */
export async function startLocalPayments({
  devnet,
  runtime,
  onProgress,
}: LocalPaymentsOptions): Promise<LocalPayments> {
  const failed = (what: string) => (error: unknown) => {
    onProgress(`${what}: ${errorText(error)}. Payments by it are not offered`);
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

/** The configuration with the local rails added. */
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
 * The token is deployed through the node that makes the blocks. The rail reads from the last node,
 * the one least likely to be killed in a demonstration of failover.
 */
async function evmRail({ chain, providers }: Devnet, runtime: Runtime): Promise<RailSettings> {
  const [first] = providers;
  const last = providers.at(-1);
  if (first === undefined || last === undefined) throw new Error("it has no node");
  const token = await deployToken(first.rpc, runtime);
  await waitForToken(last.rpc, token.address, runtime);
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

/** The other nodes import the block of the deployment a moment later. */
async function waitForToken(call: NodeCall, address: string, runtime: Runtime): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    if ((await call("eth_getCode", address, "latest")) !== "0x") return;
    await pause(runtime, PAUSE_MS);
  }
  throw new Error("its nodes do not come to the block with the token");
}

/** Lines for the terminal; empty if nothing can be paid. `program`: how a shell starts svc. */
export function payingLines(
  program: string,
  base: string,
  chainName: string,
  { tempoUrl, evmUrl, standIn }: LocalPayments,
): string {
  const [fund, call] = [
    '{"initial_fund_usd":"0.10"}',
    '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}',
  ];
  const stock = (options: string, data: string, path: string): string =>
    `  MPPX_PRIVATE_KEY=${PAYER.key} \\\n    ${MPPX_COMMAND} -r ${tempoUrl}${options} -J ` +
    `'${data}' \\\n    ${base}${path}`;
  const remark = standIn ? "; its channels are a stand-in for development, not Tempo's own" : "";
  const tempo = [
    `  # buy a key (MPP tempo)\n${stock("", fund, "/api/v1/agent/keys")}`,
    // The wallet stores its channels, and those of the last start ended with their chain, so every
    // call opens a new channel.
    "  # one call without a key (MPP " +
      `session${remark})\n${stock(" --session new", call, `/rpc/session/load-balanced/${chainName}`)}`,
  ];
  const evm =
    `  # buy a key (MPP evm, EIP-3009)\n  ${program} pay ${base}/api/v1/agent/keys --data ` +
    `'${fund}'`;
  const lines = [...(tempoUrl === null ? [] : tempo), ...(evmUrl === null ? [] : [evm])];
  if (lines.length === 0) return "";
  return (
    "Pay with local money. It is worth nothing, and everybody knows the key of this " +
    `wallet:\n\n${lines.join("\n")}\n`
  );
}
