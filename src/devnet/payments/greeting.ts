// The lines about payments printed at the start: commands that can be copied as they are.
import { MPPX_COMMAND } from "../../core/billing/payment.ts";
import type { LocalPayments } from "./local.ts";
import { PAYER } from "./wallets.ts";

/** Lines for the terminal; empty if nothing can be paid. */
export function payingLines(
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
    `  # buy a key (MPP evm, EIP-3009)\n  node bin/svc.mjs pay ${base}/api/v1/agent/keys --data ` +
    `'${fund}'`;
  const lines = [...(tempoUrl === null ? [] : tempo), ...(evmUrl === null ? [] : [evm])];
  if (lines.length === 0) return "";
  return (
    "Pay with local money. It is worth nothing, and everybody knows the key of this " +
    `wallet:\n\n${lines.join("\n")}\n`
  );
}
