// The contracts of the local payment chains: the EIP-3009 token, deployed by ordinary transactions,
// and a stand-in for Tempo's channel reserve (TIP-1034). FOR DEVELOPMENT ONLY: the stand-in belongs
// to this project, not to Tempo. Knows nothing of rails, vouchers and payees.
import { readFileSync } from "node:fs";
import type { Hex } from "viem";
import { z } from "zod";
import type { PaymentToken } from "../../core/billing/payment.ts";
import { pause, type Runtime } from "../../runtime.ts";
import { MINTER, OTHER_PAYERS, PAYER } from "./wallets.ts";

/** Calls a node; throws if it answers with an error or not at all. */
export type NodeCall = (method: string, ...params: readonly unknown[]) => Promise<unknown>;

/** Initial balance of each payer in base units: a million worthless dollars. */
export const FUNDS_UNITS = 1_000_000_000_000n;

/** The EIP-712 domain of the token. */
export const LOCAL_TOKEN = { name: "Development Dollar", version: "1" };

const GAS = "0x300000";
const WAIT_MS = 30_000;
const POLL_MS = 20;

const Hash = z.string().regex(/^0x[0-9a-f]{64}$/);
const Receipt = z.object({ status: z.string(), contractAddress: z.string() }).nullable();

/**
 * Deploys the token with a balance for every payer; rejects if the chain does not mine it within
 * thirty seconds.
 */
export async function deployToken(call: NodeCall, runtime: Runtime): Promise<PaymentToken> {
  const accounts = [PAYER, ...OTHER_PAYERS].map(({ address }) => word(BigInt(address)));
  const data = `${codeOf("DevelopmentDollar.bin")}${word(64n)}${word(FUNDS_UNITS)}${word(BigInt(accounts.length))}${accounts.join("")}`;
  const hash = Hash.parse(
    await call("eth_sendTransaction", { from: MINTER.address, data, gas: GAS }),
  );
  for (
    const deadline = runtime.now() + WAIT_MS;
    runtime.now() < deadline;
    await pause(runtime, POLL_MS)
  ) {
    const receipt = Receipt.parse(await call("eth_getTransactionReceipt", hash));
    if (receipt === null) continue;
    if (receipt.status !== "0x1")
      throw new Error(
        "the token of the local payment chain was not deployed: its transaction was reverted",
      );
    return { address: receipt.contractAddress, ...LOCAL_TOKEN };
  }
  throw new Error(
    `the token of the local payment chain was not deployed within ${WAIT_MS / 1000} s`,
  );
}

/** Bytecode of a contract, from the file beside its source: 0x…. */
function codeOf(file: string): string {
  return readFileSync(new URL(`contracts/${file}`, import.meta.url), "utf8").trim();
}

function word(value: bigint): string {
  return value.toString(16).padStart(64, "0");
}

/** Address of Tempo's channel reserve, where the stand-in is placed. */
export const CHANNEL_RESERVE = "0x4d50500000000000000000000000000000000000";

const APPROVE = "0x095ea7b3";
/** Empty data, as nodes write it. */
const NOTHING: Hex = "0x";
const ANYTHING = "f".repeat(64);
const APPROVAL_GAS = "0x100000";
const Accounts = z.array(z.string());

/**
 * Places the stand-in, and has every development account approve it for the token; the real reserve
 * needs no approval. False = the node has the real reserve, and nothing was done.
 */
export async function placeStandIn(call: NodeCall, token: string): Promise<boolean> {
  if ((await call("eth_getCode", CHANNEL_RESERVE, "latest")) !== NOTHING) return false;
  await call("anvil_setCode", CHANNEL_RESERVE, codeOf("ChannelReserve.bin-runtime"));
  const data = `${APPROVE}${CHANNEL_RESERVE.slice(2).padStart(64, "0")}${ANYTHING}`;
  const accounts = Accounts.parse(await call("eth_accounts"));
  await Promise.all(
    accounts.map((from) =>
      call("eth_sendTransaction", { from, to: token, data, gas: APPROVAL_GAS }),
    ),
  );
  return true;
}
