// The Tempo rail: MPP `tempo`/`charge`, by transactions that a payer signs and pays the fee of.
// Composes the parts; writes nothing to the store and credits nobody. It has no wallet: it sends
// the payer's transactions only.
import { decodeFunctionResult, encodeFunctionData } from "viem";
import { Abis } from "viem/tempo";
import { ChainFailure } from "../chain.ts";
import { EvmNode } from "../evm/node.ts";
import type { Rail } from "../rail.ts";
import type { RailParts, TempoRailSettings } from "../rail-kind.ts";
import { tempoChainStatus } from "./chain-status.ts";
import { keyOf, parseMaterial, readPayment, type TempoTerms, tempoOffer } from "./payment.ts";
import { checkMaterial } from "./preflight.ts";

/** The rail of these settings. Calls its chain only on demand. */
export function createTempoRail(settings: TempoRailSettings, { runtime, realm }: RailParts): Rail {
  const { chainId, rpcUrl, confirmations, modes } = settings;
  const node = new EvmNode({ rpcUrl, chainId, runtime });
  const terms: TempoTerms = {
    chainId,
    modes,
    realm,
    token: settings.token.address.toLowerCase(),
    recipient: settings.recipient.toLowerCase(),
  };
  const network = () => node.checkedNetwork(() => requireDollar(node, terms.token));
  return {
    method: "tempo",
    chainId,
    token: terms.token,
    recipient: terms.recipient,
    local: settings.local,
    network,
    ping: async () => void (await node.head()),
    offer: (units) => tempoOffer(terms, units),
    x402Offer: () => null,
    takesX402: () => false,
    read: async (credential, units) =>
      readPayment(terms, credential, { units, nowMs: runtime.wallMs() }),
    keyOf: (credential) => keyOf(terms, credential),
    async check({ material }) {
      await network();
      return checkMaterial(node, parseMaterial(material));
    },
    async draft({ payment }) {
      const material = parseMaterial(payment.material);
      return {
        wallet: null,
        sign: async () => ({
          txHash: material.hash,
          raw: material.kind === "pull" ? material.raw : null,
          nonce: null,
        }),
      };
    },
    async send({ raw }) {
      if (raw !== null) await node.send(raw);
    },
    async look({ payment }) {
      await node.network();
      return tempoChainStatus({ node, confirmations }, parseMaterial(payment.material));
    },
    wallet: async () => null,
  };
}

const DECIMALS = 6;
const SHOWN_CHARS = 8;

/** A token of another currency would be credited at a wrong value. */
async function requireDollar(node: EvmNode, token: string): Promise<void> {
  const readField = (functionName: "currency" | "decimals"): Promise<string> => {
    const view = { abi: Abis.tip20, functionName } as const;
    const read = (result: unknown): string =>
      `${decodeFunctionResult({ ...view, data: `0x${String(result).slice(2)}` })}`;
    return node.get("eth_call", [{ to: token, data: encodeFunctionData(view) }, "latest"], read);
  };
  const [currency, decimals] = await Promise.all([readField("currency"), readField("decimals")]);
  if (currency === "USD" && decimals === `${DECIMALS}`) return;
  throw new ChainFailure(
    `The token of the Tempo rail is in ${currency.slice(0, SHOWN_CHARS)} with ${decimals} ` +
      `decimals; USD and ${DECIMALS} are needed`,
  );
}
