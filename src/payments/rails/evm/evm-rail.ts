// The EIP-3009 rail: authorizations that a payer signs and our wallet submits, offered as MPP
// `evm`/`charge` and as x402 `exact`. Composes the parts; writes nothing to the store and credits
// nobody.
import { domainSeparator, getAddress } from "viem";
import type { Runtime } from "../../../runtime.ts";
import { ChainFailure } from "../chain.ts";
import type { Rail } from "../rail.ts";
import type { EvmRailSettings } from "../rail-kind.ts";
import { parseMaterial, type TokenDomain } from "./authorization.ts";
import { checkPayment, type EvmStatusParts, evmChainStatus } from "./chain-status.ts";
import { EvmNode } from "./node.ts";
import { type EvmTerms, isInToken, keyOf, mppOffer, readPayment, x402Offer } from "./offer.ts";
import { EvmWallet } from "./settlement-wallet.ts";
import { balanceData, factData, transferData } from "./token.ts";

const DECIMALS = 6n;
/** 32 bytes as hex. */
const WORD_CHARS = 66;
/** Time that a payment needs to be included and confirmed on most chains. */
const MARGIN_S = 12;
const MARGIN_PER_BLOCK_S = 6;
const MAX_MARGIN_S = 60;

/** The rail of these settings. Calls its chain only on demand. */
export function createEvmRail(
  settings: EvmRailSettings,
  { runtime }: { readonly runtime: Runtime },
): Rail {
  const { chainId, confirmations, rpcUrl } = settings;
  const node = new EvmNode({ rpcUrl, chainId, runtime });
  const wallet = new EvmWallet({ ...settings, node, runtime });
  const terms = termsOf(settings);
  const looking: EvmStatusParts = { node, runtime, wallet, confirmations };
  const network = () => node.checkedNetwork(() => requireToken(node, terms.domain));
  return {
    method: "evm",
    chainId,
    token: terms.domain.verifyingContract,
    recipient: terms.recipient,
    local: settings.local,
    network,
    ping: async () => void (await node.head()),
    offer: (units) => mppOffer(terms, units),
    x402Offer: (units, validMs) => x402Offer(terms, units, validMs),
    takesX402: (accepted) => isInToken(terms, accepted),
    read: (credential, units) => readPayment(terms, credential, { units, nowMs: runtime.wallMs() }),
    keyOf: (credential) => keyOf(terms, credential),
    async check(payment) {
      await network();
      return checkPayment(looking, payment);
    },
    async draft(purchase) {
      await node.network();
      const { token, authorization } = parseMaterial(purchase.payment.material);
      const [draft, head] = await Promise.all([
        wallet.draft(purchase, { to: token, data: transferData(authorization) }),
        node.head(),
      ]);
      if (draft === null || purchase.submissions.length > 0) return draft;
      return {
        ...draft,
        heldUnits: await node.word(
          { to: token, data: balanceData(authorization.from) },
          head.number,
        ),
      };
    },
    async send({ raw }) {
      if (raw !== null) await node.send(raw);
    },
    async look(purchase) {
      await node.network();
      return evmChainStatus(looking, purchase);
    },
    wallet: () => wallet.state(),
  };
}

function termsOf({ token, chainId, recipient, confirmations }: EvmRailSettings): EvmTerms {
  return {
    domain: {
      chainId,
      verifyingContract: getAddress(token.address.toLowerCase()),
      name: token.name,
      version: token.version,
    },
    recipient: getAddress(recipient.toLowerCase()),
    marginS: Math.min(MARGIN_S + MARGIN_PER_BLOCK_S * confirmations, MAX_MARGIN_S),
  };
}

/**
 * A token with other decimals would be credited at a wrong value; one with another domain would
 * refuse every signature.
 */
async function requireToken(node: EvmNode, domain: TokenDomain): Promise<void> {
  const { number } = await node.head();
  const decimals = await node.word(
    { to: domain.verifyingContract, data: factData("decimals") },
    number,
  );
  if (decimals !== DECIMALS)
    throw new ChainFailure(
      `The token of the EIP-3009 rail has ${decimals} decimals; ${DECIMALS} are needed`,
    );
  const separator = await node.view(
    { to: domain.verifyingContract, data: factData("DOMAIN_SEPARATOR") },
    number,
  );
  // The method is optional for tokens.
  if (
    separator.kind === "result" &&
    separator.value.length === WORD_CHARS &&
    separator.value !== domainSeparator({ domain })
  )
    throw new ChainFailure(
      "The token of the EIP-3009 rail has another EIP-712 domain than its name and version in " +
        "the configuration make",
    );
}
