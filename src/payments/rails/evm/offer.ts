// Offers of the EIP-3009 rail by MPP `evm`/`charge` and x402 `exact`, and the check of a payment
// against its offer: amount, recipient, token, time, signer. Calls no chain.
import type { Hex } from "viem";
import { z } from "zod";
import {
  type BadPayment,
  bad,
  isSameAddress,
  type Payment,
  type PaymentCredential,
  type Rail,
  type RailOffer,
  type X402Offer,
} from "../rail.ts";
import {
  type Authorization,
  materialText,
  nonceOf,
  parseAuthorization,
  parsePayer,
  signerOf,
  type TokenDomain,
} from "./authorization.ts";

/** Recipient and token of a rail. */
export interface EvmTerms {
  readonly domain: TokenDomain;
  readonly recipient: Hex;
  /** Time that a payment needs to be included and confirmed. */
  readonly marginS: number;
}

const DECIMALS = 6;
/**
 * Offers last an hour at most, and clocks differ. A longer validity would keep its purchase open
 * for as long.
 */
const MAX_VALID_S = 7_200;

/** The request of an MPP challenge, as mppx's `evm`/`charge` writes it. */
export function mppOffer({ domain, recipient }: EvmTerms, units: bigint): RailOffer {
  return {
    method: "evm",
    intent: "charge",
    request: {
      amount: `${units}`,
      currency: domain.verifyingContract,
      methodDetails: {
        chainId: domain.chainId,
        credentialTypes: ["authorization"],
        decimals: DECIMALS,
      },
      recipient,
    },
  };
}

/** An entry of x402's `accepts`. Clients send it back whole. */
export function x402Offer(
  { domain, recipient, marginS }: EvmTerms,
  units: bigint,
  validMs: number,
): X402Offer {
  return {
    scheme: "exact",
    network: `eip155:${domain.chainId}`,
    amount: `${units}`,
    asset: domain.verifyingContract,
    payTo: recipient,
    maxTimeoutSeconds: Math.min(Math.max(Math.floor(validMs / 1000), 3 * marginS), MAX_VALID_S / 2),
    extra: { name: domain.name, version: domain.version },
  };
}

/** Whether an x402 payment names this token on this chain. */
export function isInToken({ domain }: EvmTerms, { network, asset }: X402Offer): boolean {
  return network === `eip155:${domain.chainId}` && isSameAddress(asset, domain.verifyingContract);
}

/** The key of a payment, unchecked; null = it names no payer. */
export function keyOf({ domain }: EvmTerms, credential: PaymentCredential): string | null {
  const payer = parsePayer(credential);
  return payer === null
    ? null
    : `evm:${domain.chainId}:${domain.verifyingContract}:${payer.from}:${payer.nonce}`.toLowerCase();
}

/** Reads and checks a payment of `units`. */
export async function readPayment(
  terms: EvmTerms,
  credential: PaymentCredential,
  { units, nowMs }: { readonly units: bigint; readonly nowMs: number },
): Promise<Payment | BadPayment> {
  const authorization = parseAuthorization(credential);
  const key = keyOf(terms, credential);
  if (authorization === null || key === null) return bad("invalid-payload", UNREADABLE);
  const refusal =
    (credential.protocol === "mpp"
      ? mppProblem(terms, credential, { units, authorization })
      : x402Problem(terms, credential.accepted, units)) ??
    moneyProblem(terms, authorization, units) ??
    timeProblem(terms, authorization, nowMs);
  if (refusal !== null) return refusal;
  const signer = await signerOf(authorization, terms.domain);
  if (signer !== authorization.from) return bad("verification-failed", NOT_SIGNED);
  return {
    key,
    payer: authorization.from,
    units: authorization.value,
    validUntilMs: Number(authorization.validBefore) * 1000,
    isSent: false,
    material: materialText({
      token: terms.domain.verifyingContract,
      authorization,
      readAtMs: Math.floor(nowMs),
    }),
  };
}

const UNREADABLE =
  "The payload is no EIP-3009 TransferWithAuthorization with a signature of 65 bytes. Permit2, " +
  "receiveWithAuthorization and contract wallets are not taken here: sign with an ordinary " +
  "account.";
const NOT_SIGNED =
  "The signature is not that of `from` over these values in the token's EIP-712 domain. Sign " +
  "with the name and version of the token, its chain and address, by an ordinary account, with " +
  "the lower s.";

const requestShape = z.object({
  amount: z.string(),
  currency: z.string(),
  recipient: z.string(),
  methodDetails: z.object({ chainId: z.number() }),
});

/** Whether an MPP challenge has the request of a rail for this amount. */
export function isRequestOf(
  request: RailOffer["request"],
  { token, recipient, chainId }: Pick<Rail, "token" | "recipient" | "chainId">,
  units: bigint,
): boolean {
  const read = requestShape.safeParse(request).data;
  return (
    read?.amount === `${units}` &&
    read.methodDetails.chainId === chainId &&
    isSameAddress(read.currency, token) &&
    isSameAddress(read.recipient, recipient)
  );
}

function mppProblem(
  { domain, recipient }: EvmTerms,
  { challenge, source }: Extract<PaymentCredential, { readonly protocol: "mpp" }>,
  { units, authorization }: { readonly units: bigint; readonly authorization: Authorization },
): BadPayment | null {
  const { verifyingContract: token, chainId } = domain;
  const isOffered =
    challenge.method === "evm" &&
    challenge.intent === "charge" &&
    isRequestOf(challenge.request, { token, recipient, chainId }, units);
  if (!isOffered)
    return bad(
      "invalid-challenge",
      "The challenge was for another amount, token, chain or recipient than is to be paid now. " +
        "Answer a fresh one.",
    );
  if (authorization.nonce !== nonceOf(challenge))
    return bad(
      "verification-failed",
      "The nonce of the authorization is not the keccak256 hash of the challenge's id and " +
        "realm: it was signed for another one.",
    );
  if (
    source !== null &&
    !isSameAddress(source, `did:pkh:eip155:${domain.chainId}:${authorization.from}`)
  )
    return bad(
      "verification-failed",
      "The source of the credential is another account than the authorization is from.",
    );
  return null;
}

function x402Problem(terms: EvmTerms, accepted: X402Offer, units: bigint): BadPayment | null {
  const { domain, recipient } = terms;
  const { name, version } = accepted.extra;
  if (!isInToken(terms, accepted))
    return bad(
      "verification-failed",
      "`accepted` names another chain or token than PAYMENT-REQUIRED offers.",
    );
  if (accepted.amount !== `${units}`)
    return bad(
      "verification-failed",
      `\`accepted.amount\` has to be ${units}: pay what PAYMENT-REQUIRED says.`,
    );
  if (!isSameAddress(accepted.payTo, recipient))
    return bad("verification-failed", "`accepted.payTo` is not the recipient of PAYMENT-REQUIRED.");
  return name === domain.name && version === domain.version
    ? null
    : bad(
        "verification-failed",
        "`accepted.extra` is not that of PAYMENT-REQUIRED: send back the whole entry.",
      );
}

function moneyProblem(
  { recipient }: EvmTerms,
  { from, to, value }: Authorization,
  units: bigint,
): BadPayment | null {
  if (to !== recipient)
    return bad(
      "verification-failed",
      "The authorization pays another address than the offer names.",
    );
  if (from === recipient)
    return bad("verification-failed", "The authorization is from the recipient itself.");
  if (value < units)
    return bad(
      "payment-insufficient",
      `The authorization moves ${value} base units and has to move ${units}.`,
    );
  return value === units
    ? null
    : bad(
        "verification-failed",
        `The authorization moves ${value} base units and has to move exactly ${units}.`,
      );
}

function timeProblem(
  { marginS }: EvmTerms,
  { validAfter, validBefore }: Authorization,
  nowMs: number,
): BadPayment | null {
  const nowS = BigInt(Math.floor(nowMs / 1000));
  if (validAfter >= nowS)
    return bad(
      "verification-failed",
      "The authorization is not valid yet: sign a `validAfter` that has passed, such as 0.",
    );
  if (validBefore <= nowS + BigInt(marginS))
    return bad(
      "payment-expired",
      `The authorization has expired, or will before it can be settled: \`validBefore\` has to ` +
        `be more than ${marginS} seconds ahead.`,
    );
  return validBefore <= nowS + BigInt(MAX_VALID_S)
    ? null
    : bad(
        "verification-failed",
        `\`validBefore\` is more than ${MAX_VALID_S} seconds ahead: sign for a shorter time, ` +
          "such as the offer's.",
      );
}
