// Rails over the fake chain: one that settles authorizations with a wallet of ours, one whose
// payers make their own transactions. Every question to the chain goes through `outside`, where the
// test lets it fail.
import { z } from "zod";
import type {
  BadPayment,
  ChainStatus,
  Payment,
  PaymentCredential,
  Rail,
  RailPurchase,
  X402Offer,
} from "../../src/payments/rails/rail.ts";
import { type Authorization, type FakeChain, type FakeTx, hashOf } from "./fake-chain.ts";

/** Where a call leaves this process: may fail before the act, or after it. */
export type Outside = <T>(name: string, act: () => T | Promise<T>) => Promise<T>;

/** What a rail works with. */
export interface FakeRailParts {
  readonly chain: FakeChain;
  readonly outside: Outside;
  readonly now: () => number;
  readonly confirmations: number;
  readonly local?: boolean;
}

const RECIPIENT = "0xrecipient";
const TOKEN = "0xtoken";
const CHAIN_ID = 77;
const WALLET = "77:0xwallet";

const authorization = z.strictObject({
  from: z.string(),
  nonce: z.string(),
  units: z.string(),
  validBeforeMs: z.number(),
});
const payerTx = z.strictObject({
  kind: z.literal("payer"),
  from: z.string(),
  units: z.string(),
  memo: z.string(),
  validBeforeMs: z.number(),
});
const authorized = z.object({ authorization, signature: z.string() });
const paying = z.object({ tx: payerTx, mode: z.enum(["pull", "push"]) });
const walletTx = z.strictObject({
  kind: z.literal("wallet"),
  nonce: z.string(),
  fee: z.number(),
  authorization,
});

/** Settles authorizations by a wallet of ours: MPP method `fake-auth`, and x402. */
export function authorizationRail({
  chain,
  outside,
  now,
  confirmations,
  local = false,
}: FakeRailParts): Rail {
  const isUsed = ({ from, nonce }: Authorization) => chain.at(0).state.used.has(`${from}:${nonce}`);
  const refusal = (it: Authorization): BadPayment | null => {
    if (isUsed(it)) return null;
    if (it.validBeforeMs <= now()) return bad("payment-expired");
    return (chain.at(0).state.balances.get(it.from) ?? 0n) < BigInt(it.units)
      ? bad("payment-insufficient")
      : null;
  };
  const given = (presented: PaymentCredential) =>
    authorized.safeParse(presented.payload).data ?? null;
  return {
    ...common("fake-auth", { chain, outside, local }),
    offer: (units) => ({
      method: "fake-auth",
      intent: "charge",
      request: { amount: String(units) },
    }),
    x402Offer: (units) => x402Of(units),
    takesX402: ({ network }) => network === x402Of(0n).network,
    async read(presented, units) {
      const it = given(presented);
      if (it === null || it.signature !== `signed by ${it.authorization.from}`)
        return bad("verification-failed");
      if (BigInt(it.authorization.units) !== units) return bad("payment-insufficient");
      if (
        presented.protocol === "mpp" &&
        it.authorization.nonce !== `for ${presented.challenge.id}`
      )
        return bad("verification-failed");
      return paymentOf(keyOf(it.authorization), {
        ...it.authorization,
        isSent: false,
        material: it.authorization,
      });
    },
    keyOf: (presented) => {
      const it = given(presented);
      return it === null ? null : keyOf(it.authorization);
    },
    check: ({ material }) =>
      outside("check", () => refusal(authorization.parse(JSON.parse(material)))),
    draft: ({ payment, submissions }) =>
      outside("draft", () => {
        const it = authorization.parse(JSON.parse(payment.material));
        const before = submissions.at(-1);
        if (before === undefined && (refusal(it) !== null || isUsed(it))) return null;
        const fee =
          before?.raw === undefined || before.raw === null
            ? chain.baseFee
            : Math.ceil(Math.max(chain.baseFee, parsed(before.raw).fee * 1.13));
        return {
          wallet: { id: WALLET, chainNonce: chain.pendingNonce() },
          sign: async (nonce) => {
            const tx: FakeTx = { kind: "wallet", nonce: String(nonce), fee, authorization: it };
            return { txHash: hashOf(tx), raw: JSON.stringify(tx), nonce };
          },
        };
      }),
    send: ({ raw }) =>
      outside("send", () => void (raw === null ? undefined : chain.send(parsed(raw)))),
    look: (purchase) => outside("look", () => lookAtAuthorization(chain, confirmations, purchase)),
    wallet: () =>
      outside("wallet", () => ({
        id: WALLET,
        balanceWei: 1n,
        low: false,
        empty: false,
        dear: false,
        nonce: chain.at(confirmations).state.walletNonce,
      })),
  };
}

/** Payers make their own transactions: method `fake-tx`, sent by us (pull) or by them (push). */
export function payerRail({
  chain,
  outside,
  now,
  confirmations,
  local = false,
}: FakeRailParts): Rail {
  const given = (presented: PaymentCredential) =>
    presented.protocol === "mpp" ? (paying.safeParse(presented.payload).data ?? null) : null;
  const nameOf = (tx: FakeTx, presented: PaymentCredential) =>
    `fake:${hashOf(tx)}:${presented.protocol === "mpp" ? presented.challenge.id : ""}`;
  return {
    ...common("fake-tx", { chain, outside, local }),
    offer: (units) => ({ method: "fake-tx", intent: "charge", request: { amount: String(units) } }),
    x402Offer: () => null,
    takesX402: () => false,
    async read(presented, units) {
      const it = given(presented);
      if (it === null || presented.protocol !== "mpp" || it.tx.memo !== presented.challenge.id)
        return bad("verification-failed");
      if (BigInt(it.tx.units) !== units) return bad("payment-insufficient");
      return paymentOf(nameOf(it.tx, presented), {
        ...it.tx,
        isSent: it.mode === "push",
        material: it,
      });
    },
    keyOf: (presented) => {
      const it = given(presented);
      return it === null ? null : nameOf(it.tx, presented);
    },
    check: ({ material }) =>
      outside("check", () => {
        const { tx, mode } = paying.parse(JSON.parse(material));
        const receipt = chain.at(0).state.receipts.get(hashOf(tx));
        if (receipt !== undefined) return receipt.ok ? null : bad("verification-failed");
        if (mode === "push" && !chain.knows(hashOf(tx))) throw new Error("not known yet");
        if (mode === "push") return null;
        if (tx.validBeforeMs <= now()) return bad("payment-expired");
        return (chain.at(0).state.balances.get(tx.from) ?? 0n) < BigInt(tx.units)
          ? bad("payment-insufficient")
          : null;
      }),
    draft: ({ payment }) =>
      outside("draft", () => {
        const { tx, mode } = paying.parse(JSON.parse(payment.material));
        return {
          wallet: null,
          sign: async () => ({
            txHash: hashOf(tx),
            raw: mode === "pull" ? JSON.stringify(tx) : null,
            nonce: null,
          }),
        };
      }),
    send: ({ raw }) =>
      outside(
        "send",
        () => void (raw === null ? undefined : chain.send(payerTx.parse(JSON.parse(raw)))),
      ),
    look: ({ payment }) =>
      outside("look", (): ChainStatus => {
        const { tx } = paying.parse(JSON.parse(payment.material));
        const deep = chain.at(confirmations);
        const receipt = deep.state.receipts.get(hashOf(tx));
        if (receipt?.ok === false) return { kind: "failed", reason: "it reverted" };
        const moved = deep.state.moved.find((it) => it.txHash === hashOf(tx));
        if (moved !== undefined)
          return {
            kind: "settled",
            txHash: moved.txHash,
            block: BigInt(moved.block),
            logIndex: moved.logIndex,
          };
        if (tx.validBeforeMs <= deep.timeMs) return { kind: "failed", reason: "its time is over" };
        return { kind: "open", resend: !chain.knows(hashOf(tx)), replace: false };
      }),
    wallet: () => outside("wallet", () => null),
  };
}

function common(
  method: string,
  {
    chain,
    outside,
    local,
  }: { readonly chain: FakeChain; readonly outside: Outside; readonly local: boolean },
) {
  return {
    method,
    chainId: CHAIN_ID,
    token: TOKEN,
    recipient: RECIPIENT,
    local,
    network: () => outside("network", () => chain.network),
    ping: () => outside("reach", () => undefined),
  };
}

function lookAtAuthorization(
  chain: FakeChain,
  confirmations: number,
  { payment, submissions }: RailPurchase,
): ChainStatus {
  const it = authorization.parse(JSON.parse(payment.material));
  const deep = chain.at(confirmations);
  const moved = deep.state.used.get(`${it.from}:${it.nonce}`);
  if (moved !== undefined && moved.units === BigInt(it.units)) {
    return {
      kind: "settled",
      txHash: moved.txHash,
      block: BigInt(moved.block),
      logIndex: moved.logIndex,
    };
  }
  if (moved !== undefined || it.validBeforeMs <= deep.timeMs)
    return { kind: "failed", reason: "it was not carried out in time" };
  const newest = submissions.at(-1);
  // Carried out, and not deep enough.
  if (chain.at(0).state.used.has(`${it.from}:${it.nonce}`))
    return { kind: "open", resend: false, replace: false };
  if (newest === undefined || newest.raw === null || newest.nonce === null)
    return { kind: "open", resend: false, replace: false };
  if (chain.at(0).state.walletNonce > newest.nonce)
    return { kind: "open", resend: true, replace: false };
  return {
    kind: "open",
    resend: !chain.knows(newest.txHash),
    replace: parsed(newest.raw).fee < chain.baseFee,
  };
}

function keyOf({ from, nonce }: Authorization): string {
  return `fake:${from}:${nonce}`;
}

function paymentOf(
  key: string,
  {
    from,
    units,
    validBeforeMs,
    isSent,
    material,
  }: Pick<Authorization, "from" | "units" | "validBeforeMs"> & {
    isSent: boolean;
    material: unknown;
  },
): Payment {
  return {
    key,
    payer: from,
    units: BigInt(units),
    validUntilMs: validBeforeMs,
    isSent,
    material: JSON.stringify(material),
  };
}

function x402Of(units: bigint): X402Offer {
  const place = {
    scheme: "exact",
    network: `eip155:${CHAIN_ID}`,
    asset: TOKEN,
    payTo: RECIPIENT,
  } as const;
  return {
    ...place,
    amount: String(units),
    maxTimeoutSeconds: 300,
    extra: { name: "Token", version: "1" },
  };
}

function bad(problem: string): BadPayment {
  return { kind: "bad_payment", problem, reason: `the payment is not right: ${problem}` };
}

function parsed(raw: string): FakeTx & { readonly kind: "wallet" } {
  return walletTx.parse(JSON.parse(raw));
}
