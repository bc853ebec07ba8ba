// What the tests of the EIP-3009 rail share: a real chain whose blocks come when they are asked
// for, payments signed as clients sign them, and the smallest driver of a rail.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { Types } from "mppx/evm";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type {
  BadPayment,
  ChainStatus,
  MppChallenge,
  Payment,
  PaymentCredential,
  Rail,
  RailPurchase,
  Submission,
} from "../../../../src/payments/rails/rail.ts";
import type { EvmRailSettings } from "../../../../src/payments/rails/rail-kind.ts";
import { type ChainProxy, startChainProxy } from "../../../fakes/chain-proxy.ts";
import { type PaymentChains, startPaymentChains } from "../../../fakes/payment-chains.ts";

/** What a payer signs; everything else is as the offer says. */
export interface SignedParts {
  readonly key: Hex;
  readonly settings: EvmRailSettings;
  readonly value: bigint;
  readonly nonce: Hex;
  readonly to?: string;
  readonly from?: string;
  readonly validAfter?: bigint;
  readonly validBefore?: bigint;
  readonly domain?: {
    readonly chainId?: number;
    readonly name?: string;
    readonly version?: string;
    readonly verifyingContract?: Hex;
  };
}

/** A chain under test. */
export interface EvmFixture {
  readonly chains: PaymentChains;
  readonly settings: EvmRailSettings;
  /** Carries what is asked of the chain. */
  readonly proxy: ChainProxy;
  /** Mines what waits, and empty blocks after it. */
  mine(blocks?: number): Promise<void>;
  close(): Promise<void>;
}

/** Starts the chains; blocks come from now on by `mine` alone. */
export async function startEvmFixture(): Promise<EvmFixture> {
  const chains = await startPaymentChains();
  const { rpc } = chains.evm;
  await rpc("evm_setIntervalMining", 0);
  await rpc("evm_setAutomine", false);
  const proxy = await startChainProxy(chains.evm.rpcUrl);
  return {
    chains,
    proxy,
    settings: { ...chains.rails.evm, rpcUrl: proxy.url },
    mine: async (blocks = 1) => {
      for (let mined = 0; mined < blocks; mined += 1) await rpc("evm_mine");
    },
    close: async () => {
      await Promise.all([proxy.close(), chains.close()]);
    },
  };
}

/** A challenge as the protocol hands it to a rail. */
export function challengeFor(
  rail: Rail,
  units: bigint,
  id = `challenge-${randomUUID()}`,
): MppChallenge {
  const { method, intent, request } = rail.offer(units);
  return { id, realm: "svc.test", method, intent, request, expires: null };
}

/** Signs a transfer with mppx's own types. */
export async function signed(parts: SignedParts) {
  const { key, settings, value, nonce, domain } = parts;
  const account = privateKeyToAccount(key);
  const authorization = {
    from: parts.from ?? account.address,
    to: parts.to ?? settings.recipient,
    value: `${value}`,
    validAfter: `${parts.validAfter ?? 0n}`,
    validBefore: `${parts.validBefore ?? inSeconds(300)}`,
    nonce,
  };
  const signature = await account.signTypedData({
    domain: {
      ...Types.authorizationDomain({
        authorization: settings.token,
        chainId: settings.chainId,
        currency: parseHex(settings.token.address),
      }),
      ...domain,
    },
    types: Types.authorizationTypes,
    primaryType: "TransferWithAuthorization",
    message: {
      from: parseHex(authorization.from),
      to: parseHex(authorization.to),
      value,
      validAfter: BigInt(authorization.validAfter),
      validBefore: BigInt(authorization.validBefore),
      nonce,
    },
  });
  return { authorization, signature };
}

/** A payment by MPP; `payload` changes what the client sends after signing. */
export async function mppPayment(
  rail: Rail,
  parts: Omit<SignedParts, "nonce"> & {
    readonly nonce?: Hex;
    readonly challenge?: MppChallenge;
    readonly source?: string;
    readonly payload?: Record<string, unknown>;
  },
): Promise<Extract<PaymentCredential, { protocol: "mpp" }>> {
  const challenge = parts.challenge ?? challengeFor(rail, parts.value);
  const { authorization, signature } = await signed({
    ...parts,
    nonce: parts.nonce ?? Types.challengeHash(challenge),
  });
  return {
    protocol: "mpp",
    challenge,
    payload: { type: "authorization", ...authorization, signature, ...parts.payload },
    source: parts.source ?? null,
  };
}

/** A payment by x402. */
export async function x402Payment(
  rail: Rail,
  parts: Omit<SignedParts, "nonce"> & {
    readonly nonce?: Hex;
    readonly accepted?: Record<string, unknown>;
  },
): Promise<Extract<PaymentCredential, { protocol: "x402" }>> {
  const offer = rail.x402Offer(parts.value, 300_000);
  assert.ok(offer !== null);
  return {
    protocol: "x402",
    accepted: { ...offer, ...parts.accepted },
    payload: await signed({ ...parts, nonce: parts.nonce ?? randomNonce() }),
  };
}

/** Reads a payment that has to be right. */
export async function accepted(
  rail: Rail,
  presented: PaymentCredential,
  units: bigint,
): Promise<Payment> {
  const payment = await rail.read(presented, units);
  if ("kind" in payment) assert.fail(`${payment.problem}: ${payment.reason}`);
  return payment;
}

/** The refusal of a payment that has to be wrong. */
export function refusal(answer: Payment | BadPayment | null): BadPayment {
  if (answer === null || !("kind" in answer)) assert.fail("the payment was taken");
  return answer;
}

/** A purchase as a test keeps it: what was written is what would be in the store. */
export class Purchase implements RailPurchase {
  readonly id = "purchase";
  readonly payment: Payment;
  submissions: readonly Submission[] = [];

  constructor(payment: Payment) {
    this.payment = payment;
  }
}

/**
 * One step of a purchase: looks; sends, sends again or replaces as the rail says. Resolves with
 * what was seen before the step.
 */
export async function step(rail: Rail, purchase: Purchase): Promise<ChainStatus> {
  const truth = await rail.look(purchase);
  if (truth.kind !== "open") return truth;
  const newest = purchase.submissions.at(-1);
  if (newest === undefined || truth.replace) {
    const draft = await rail.draft(purchase);
    if (draft === null) return truth;
    const submission = await draft.sign(newest?.nonce ?? draft.wallet?.chainNonce ?? null);
    purchase.submissions = [...purchase.submissions, submission];
    await rail.send(submission);
  } else if (truth.resend) await rail.send(newest);
  return truth;
}

/** Drafts and signs the next transaction without sending it. */
export async function write(rail: Rail, purchase: Purchase): Promise<Submission> {
  const draft = await rail.draft(purchase);
  assert.ok(draft !== null, "there is something to send");
  const submission = await draft.sign(draft.wallet?.chainNonce ?? null);
  purchase.submissions = [...purchase.submissions, submission];
  return submission;
}

/** Unix time some seconds from now. */
export function inSeconds(seconds: number): bigint {
  return BigInt(Math.floor(Date.now() / 1000) + seconds);
}

/** 32 bytes that nobody used. */
export function randomNonce(): Hex {
  return `0x${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex")}`;
}

/** As viem wants it. */
export function parseHex(text: string): Hex {
  return `0x${text.slice(2)}`;
}
