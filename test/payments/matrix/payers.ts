// Payers of the matrix: they take an offer up in one of four ways, and bring the very same payment
// again until there is a result. What they sign says the fixture's time.
import assert from "node:assert/strict";
import { Challenge, Credential } from "mppx";
import { Types } from "mppx/evm";
import type { Hex } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import type { Purpose } from "../../../src/core/billing/payment.ts";
import type { LocalWallet } from "../../../src/devnet/payments/wallets.ts";
import { createAnonymousKey } from "../../../src/hosted/keys/create.ts";
import type {
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
} from "../../../src/payments/payments.ts";
import type { X402Offer } from "../../../src/payments/rails/rail.ts";
import { createAccount } from "../../hosted/accounts/account-fixture.ts";
import { markOf, orderOf, type Wish } from "../payment-fixture.ts";
import { randomNonce, signed } from "../rails/evm/evm-fixture.ts";
import { memoFor } from "../rails/tempo/memo.ts";
import {
  clientOf,
  OTHER_TOKEN,
  signedTransaction,
  transfer,
} from "../rails/tempo/tempo-fixture.ts";
import type { MatrixFixture } from "./chain-fixture.ts";
import type { Life } from "./process-fixture.ts";

/** Ways to pay. */
export const WAYS = ["tempo pull", "tempo push", "evm by MPP", "evm by x402"] as const;
export type Way = (typeof WAYS)[number];

/** Base units of every payment. */
const UNITS = 250_000n;

/** Wallets sign for so long. */
const TEMPO_S = 25;
const EVM_S = 60;

/** The rail of a way. */
export function railOf(way: Way): "tempo" | "evm" {
  return way.startsWith("tempo") ? "tempo" : "evm";
}

/** Something to buy, for a beneficiary who was just made. */
export async function wishFor(
  { store }: Pick<MatrixFixture, "store">,
  kind: Purpose["kind"],
  name: string,
): Promise<Wish> {
  const wish = (purpose: Purpose): Wish => ({ purpose, units: UNITS, request: `request ${name}` });
  switch (kind) {
    case "create_key":
      return wish({ kind, name });
    case "fund_key": {
      const { accountId, id } = await createAnonymousKey(store, { name: "", grantN: 0n }, 1);
      return wish({ kind, accountId, keyId: id });
    }
    case "credit_account":
      await createAccount(store, `acc_${name}`);
      return wish({ kind, accountId: `acc_${name}` });
    case "custom_access":
      await createAccount(store, `acc_${name}`);
      return wish({ kind, accountId: `acc_${name}`, keyId: "key_x", days: 2 });
  }
}

/** What a payer brings, and what it has sent to the chain itself; null = nothing. */
export interface SignedPayment extends PaymentHeaders {
  readonly sent: string | null;
}

/** Takes an offer up; null = the way is not offered. By push the money is on its way then. */
export async function signedPayment(
  fixture: MatrixFixture,
  way: Way,
  headers: readonly string[],
  payer: LocalWallet,
): Promise<SignedPayment | null> {
  if (way === "evm by x402") return x402Payment(fixture, headers, payer);
  const challenge = challengesIn(headers).find(({ method }) => method === railOf(way));
  if (challenge === undefined) return null;
  const rail = railOf(way);
  const source = `did:pkh:eip155:${fixture.chains[rail].chainId}:${payer.address}`;
  const { payload, sent } =
    rail === "evm"
      ? await evmPayload(fixture, challenge, payer)
      : await tempoPayload(fixture, challenge, { way, payer });
  return { protocol: "mpp", text: Credential.serialize({ challenge, payload, source }), sent };
}

function challengesIn(headers: readonly string[]): readonly Challenge.Challenge[] {
  return headers.flatMap((name, at) =>
    at % 2 === 0 && name === "WWW-Authenticate"
      ? [Challenge.deserialize(headers[at + 1] ?? "")]
      : [],
  );
}

async function tempoPayload(
  fixture: MatrixFixture,
  challenge: Challenge.Challenge,
  { way, payer }: { readonly way: Way; readonly payer: LocalWallet },
) {
  const { tempo } = fixture.chains;
  const signature = await tempoTransfer(fixture, payer, { units: UNITS, memo: memoFor(challenge) });
  if (way === "tempo pull") return { payload: { type: "transaction", signature }, sent: null };
  return {
    payload: {
      type: "hash",
      hash: String(await fixture.ask(tempo, "eth_sendRawTransaction", signature)),
    },
    sent: signature,
  };
}

/** A transfer on the Tempo chain that is signed and not sent; its fee is paid in another token. */
export function tempoTransfer(
  { chains, runtime }: MatrixFixture,
  payer: LocalWallet,
  what: { readonly units: bigint; readonly to?: Hex; readonly memo?: Hex },
) {
  const call = transfer({ client: clientOf(chains.tempo.rpcUrl) }, what);
  const validBefore = Math.floor(runtime.wallMs() / 1_000) + TEMPO_S;
  return signedTransaction({ payer: privateKeyToAccount(payer.key) }, [call], {
    validBefore,
    feeToken: OTHER_TOKEN,
  });
}

async function evmPayload(
  fixture: MatrixFixture,
  challenge: Challenge.Challenge,
  payer: LocalWallet,
) {
  const { authorization, signature } = await signed({
    ...authorizing(fixture, payer),
    nonce: Types.challengeHash(challenge),
  });
  return { payload: { type: "authorization", ...authorization, signature }, sent: null };
}

async function x402Payment(
  fixture: MatrixFixture,
  headers: readonly string[],
  payer: LocalWallet,
): Promise<SignedPayment | null> {
  const offered = headers[headers.indexOf("PAYMENT-REQUIRED") + 1];
  if (offered === undefined || !headers.includes("PAYMENT-REQUIRED")) return null;
  const { accepts, resource } = parseRequired(Buffer.from(offered, "base64").toString());
  const payload = await signed({ ...authorizing(fixture, payer), nonce: randomNonce() });
  return {
    protocol: "x402",
    text: Buffer.from(
      JSON.stringify({ x402Version: 2, resource, accepted: accepts[0], payload }),
    ).toString("base64"),
    sent: null,
  };
}

function authorizing({ chains, runtime }: MatrixFixture, payer: LocalWallet) {
  const validBefore = BigInt(Math.floor(runtime.wallMs() / 1_000) + EVM_S);
  return { key: payer.key, settings: chains.rails.evm, value: UNITS, validBefore };
}

function parseRequired(text: string): {
  readonly accepts: readonly X402Offer[];
  readonly resource: unknown;
} {
  return JSON.parse(text);
}

/** Somebody who pays. */
export interface Payer {
  readonly fixture: MatrixFixture;
  readonly wish: Wish;
  readonly way: Way;
  readonly wallet: LocalWallet;
  /** The process that lives, started where there is none. */
  readonly next: () => Promise<Life>;
  /** What was signed: it is signed once. */
  given?: SignedPayment;
  /**
   * True = after an answer that is no result it does not ask again before the purchase has ended by
   * itself.
   */
  readonly isPatient: boolean;
}

/** Brings a payment. */
export function bring(
  { payments, end }: Life,
  given: PaymentHeaders,
  wish: Wish,
): Promise<PaidPurchase | PaymentDeclined | { readonly kind: "refused" }> {
  return Promise.race([
    payments.take<{ readonly kind: "refused" }>(given, markOf(wish.request), async () =>
      orderOf(wish),
    ),
    end,
  ]);
}

const AGAIN_MS = 1_000;
const MAX_TRIES = 300;

/**
 * Pays, and repeats until there is a result. Whatever happens, it is not told that its payment is
 * not right: but, where trouble lasts for so long that it `mayExpire`, before it was recorded.
 */
export async function buy(
  payer: Payer,
  { mayExpire = false } = {},
): Promise<PaidPurchase | PaymentDeclined> {
  const { fixture, wish, next } = payer;
  let last = "no answer";
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const life = await next();
    const result = await tried(payer, life);
    if (result?.kind === "paid") return result;
    if (result?.kind === "declined") {
      const { code, message } = result.fault;
      last = `${code}: ${message} (${result.purchaseId})`;
      if (code === "payment_invalid") await assertExpired(payer, mayExpire, result);
      if (code !== "payment_pending" && code !== "unavailable") return result;
    }
    await pause(
      fixture,
      result?.kind === "declined" ? (result.fault.retryAfterMs ?? AGAIN_MS) : AGAIN_MS,
    );
    if (payer.isPatient && payer.given !== undefined) await endOf(payer);
  }
  throw new assert.AssertionError({
    message: `${wish.request} by ${payer.way}: no result after ${MAX_TRIES} tries; ${last}`,
  });
}

async function assertExpired(
  { fixture, wish }: Payer,
  mayExpire: boolean,
  { problem, fault }: PaymentDeclined,
): Promise<void> {
  const { fingerprint } = markOf(wish.request);
  const row = await fixture.store.db
    .selectFrom("purchase")
    .select("id")
    .where("fingerprint", "=", fingerprint)
    .executeTakeFirst();
  assert.ok(
    mayExpire && row === undefined && problem === "payment-expired",
    `${row?.id ?? "nothing recorded"}, ${problem}: ${fault.message}`,
  );
}

/** Null = no answer, or no offer. */
async function tried(payer: Payer, life: Life): Promise<PaidPurchase | PaymentDeclined | null> {
  const { fixture, wish, way, wallet } = payer;
  try {
    if (payer.given === undefined) {
      const challenge = await Promise.race([life.payments.challenge(orderOf(wish)), life.end]);
      const given =
        challenge === null ? null : await signedPayment(fixture, way, challenge.headers, wallet);
      if (given === null) return null;
      payer.given = given;
    }
    const taken = await bring(life, payer.given, wish);
    assert.notEqual(taken.kind, "refused");
    return taken.kind === "refused" ? null : taken;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    // The process has died, or its store has failed.
    return null;
  }
}

/**
 * Waits until no purchase is under way; a dead one is started anew, without being asked for
 * anything.
 */
async function endOf({ fixture, next }: Payer): Promise<void> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const open = await fixture.store.db
      .selectFrom("purchase")
      .select("id")
      .where("ended_at", "is", null)
      .executeTakeFirst();
    if (open === undefined) return;
    await next();
    await pause(fixture, AGAIN_MS);
  }
}

/** Resolves when some of the fixture's time has gone by. */
export function pause({ runtime }: Pick<MatrixFixture, "runtime">, ms: number): Promise<void> {
  return new Promise((resolve) => void runtime.after(ms, resolve));
}
