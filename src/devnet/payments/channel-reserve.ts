// A stand-in for Tempo's channel reserve (TIP-1034), for a chain that ends before the fork with the
// real one. FOR DEVELOPMENT ONLY: the contract belongs to this project, not to Tempo. Supplies what
// the stand-in needs from outside the chain; knows nothing of vouchers and payees.
import type { Hex } from "viem";
import { z } from "zod";
import { codeOf, type NodeCall } from "./token.ts";

/** Address of Tempo's channel reserve, where the stand-in is placed. */
export const CHANNEL_RESERVE = "0x4d50500000000000000000000000000000000000";

const APPROVE = "0x095ea7b3";
/** Empty data, as nodes write it. */
export const NOTHING: Hex = "0x";
const ANYTHING = "f".repeat(64);
const GAS = "0x100000";
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
    accounts.map((from) => call("eth_sendTransaction", { from, to: token, data, gas: GAS })),
  );
  return true;
}
