// The command that pays for a purchase from a terminal: the stock command line of the protocol. The
// management token and the wallet stand in variables, never in the text.
import { SERVICE_URL } from "../../api/client.ts";
import { shell } from "../../snippets/snippets.ts";
import type { PaidRequest } from "../../wallet/paid-request.ts";

const COMMAND = "npx -y -p mppx@0.11.0 -p viem@2.57.1 mppx";

/** The command; `byX402` = the service takes EIP-3009 payments alone. */
export function paymentCommand({ path, body }: PaidRequest, byX402: boolean): string {
  const url = new URL(path.slice(1), SERVICE_URL).href;
  return [
    "# SVC_TOKEN: your management token; MPPX_PRIVATE_KEY: the key of a wallet",
    `${COMMAND} ${shell(url)} \\`,
    `  -H "Authorization: Bearer $SVC_TOKEN" \\`,
    `  -J ${shell(JSON.stringify(body))}${byX402 ? " --protocol x402" : ""}`,
  ].join("\n");
}
