// Stock clients of payments with wallets of the local payment chains: mppx on both rails, and
// @x402/fetch. They send by whatever `fetch` they are given.
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { Mppx, tempo } from "mppx/client";
import { charge } from "mppx/evm/client";
import { createClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { tempoLocalnet } from "viem/chains";
import type { PaymentChains } from "./payment-chains.ts";

/** Sends a request, and pays where it is asked to. */
export type Paying = (url: string, init?: RequestInit) => Promise<Response>;

/** Clients that pay up to this many base units at once. */
const MAX_UNITS = "100000000";

/** mppx with a wallet on the Tempo chain. */
export function tempoClient(
  { payer, tempo: chain }: PaymentChains,
  mode: "pull" | "push",
  send: typeof fetch = fetch,
): Paying {
  const account = privateKeyToAccount(payer.key);
  const client = createClient({
    chain: tempoLocalnet,
    transport: http(chain.rpcUrl),
    account,
    pollingInterval: 20,
  });
  const mppx = Mppx.create({
    methods: [tempo.charge({ account, mode, getClient: () => client })],
    polyfill: false,
    fetch: send,
  });
  return (url, init) => mppx.fetch(url, init);
}

/** mppx with a wallet on the EVM chain. */
export function evmClient({ payer, evm }: PaymentChains, send: typeof fetch = fetch): Paying {
  const { name, version } = evm.token;
  const method = charge({
    account: privateKeyToAccount(payer.key),
    authorization: { name, version },
    maxAtomicAmount: MAX_UNITS,
  });
  const mppx = Mppx.create({ methods: [method], polyfill: false, fetch: send });
  return (url, init) => mppx.fetch(url, init);
}

/** @x402/fetch with a wallet on the EVM chain. */
export function x402Fetch({ payer, evm }: PaymentChains, send: typeof fetch = fetch): Paying {
  const network = `eip155:${evm.chainId}` as const;
  const client = x402Client.fromConfig({
    schemes: [{ network, client: new ExactEvmScheme(privateKeyToAccount(payer.key)) }],
    // Without this it pays in well-known tokens only, and one dollar at most.
    spendControls: { allowedAssets: [{ network, asset: evm.token.address }] },
  });
  const paying = wrapFetchWithPayment(send, client);
  return (url, init) => paying(url, init);
}
