// The settings of payments: rails, ranges, defaults and bounds.

import { z } from "zod";
import { parseUsd } from "../core/billing/price.ts";
import type { PaymentSettings, RailSettings } from "../payments/rails/rails.ts";
import { count, intervalMs, pattern, settings, text, whole } from "./kinds.ts";

const usd = (fallback: string) =>
  z
    .string()
    .refine((text) => (parseUsd(text) ?? 0n) > 0n && (parseUsd(text) ?? 0n) % 1_000n === 0n)
    .meta({ title: 'USD as text, like "0.10", with at most six places' })
    .default(fallback);

const address = pattern(/^0x[0-9a-fA-F]{40}$/).meta({ title: "an address, 0x and 40 hex digits" });

const walletKey = pattern(/^0x[0-9a-fA-F]{64}$/).meta({
  title: "a private key, 0x and 64 hex digits",
});

const wei = pattern(/^\d{1,30}$/).meta({ title: "wei as text of digits" });

const common = {
  rpc_url: z
    .url({ protocol: /^https?$/ })
    .max(2_048)
    .describe("A node of the payment chain."),
  chain_id: whole(1, Number.MAX_SAFE_INTEGER),
  recipient: address.describe("Address that receives payments."),
};

const tempo = settings({
  kind: z.literal("tempo"),
  ...common,
  token: address.describe("TIP-20 token that is paid in, a stablecoin in USD."),
  modes: z
    .array(z.enum(["pull", "push"]))
    .min(1)
    .max(2)
    .default(["pull", "push"])
    .describe(
      "`pull` = the service sends the transaction that the client signed; `push` = the client " +
        "sends it and shows its hash.",
    ),
  confirmations: count(0, 1_000, 0).describe(
    "Blocks that have to follow before money counts as received.",
  ),
}).describe("MPP `tempo`/`charge`.");

const evm = settings({
  kind: z.literal("evm"),
  ...common,
  token: settings({
    address,
    name: text(1, 64),
    version: text(1, 16),
  }).describe("Token with EIP-3009, and the name and version of its EIP-712 domain."),
  wallet_key: walletKey.describe(
    "Secret key of the settlement wallet, which holds nothing but gas.",
  ),
  confirmations: count(0, 1_000, 3).describe(
    "Blocks that have to follow before money counts as received.",
  ),
  low_gas_wei: wei
    .default("10000000000000000")
    .describe("Below this much in the settlement wallet the operator is alarmed."),
  max_gas_wei: wei
    .default("2000000000000000")
    .describe(
      "The most that the gas of one settlement may cost; while it costs more, payments wait and " +
        "nothing is offered by this rail.",
    ),
}).describe("EIP-3009 authorizations: MPP `evm`/`charge` and x402 `exact`.");

const session = settings({
  kind: z.literal("session"),
  ...common,
  token: address.describe("TIP-20 token that is paid in, a stablecoin in USD."),
  wallet_key: walletKey.describe(
    "Secret key of the recipient's wallet, which settles and closes channels.",
  ),
  confirmations: count(0, 1_000, 0).describe(
    "Blocks that have to follow before money counts as received.",
  ),
  escrow: address.optional().describe("Channel contract. Default: the precompile of the chain."),
  deposit_usd: usd("1").describe("Deposit that is suggested to clients."),
  settle_usd: usd("0.5").describe("A channel is settled once this much is owed."),
  settle_after_ms: intervalMs(600_000).describe(
    "A channel is settled when something has been owed for this long.",
  ),
}).describe("MPP `tempo`/`session`, for pay-per-call at `/rpc/session/…`.");

type RailFile = z.output<typeof tempo> | z.output<typeof evm> | z.output<typeof session>;

/** The wallet of a rail, as text: rails must not share one, or they would use the same nonces. */
function walletOf(rail: RailFile): readonly string[] {
  return rail.kind === "tempo" ? [] : [`${rail.wallet_key.toLowerCase()} ${rail.chain_id}`];
}

function isDistinct(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}

/** Payments by machines. */
export const payments = settings({
  rails: z
    .array(z.discriminatedUnion("kind", [tempo, evm, session]))
    .max(8)
    .refine(
      (rails) =>
        isDistinct(rails.map((rail) => `${rail.kind} ${rail.chain_id}`)) &&
        isDistinct(rails.flatMap(walletOf)),
    )
    .meta({
      title:
        "at most 8 rails, each of its kind once for a chain, and each with a wallet of its own " +
        "there",
    })
    .default([])
    .describe("Ways to pay. None = nothing can be bought."),
  min_usd: usd("0.1").describe("Smallest purchase."),
  max_usd: usd("100").describe("Largest purchase."),
  custom_day_usd: usd("1.3").describe("Price of a day of Custom access."),
  max_custom_days: count(1, 366, 30).describe("Days of Custom access in one purchase."),
  wait_ms: intervalMs(5_000, 60_000).describe(
    "How long a paying request waits for its chain before it is answered `payment_pending`.",
  ),
  offer_ms: intervalMs(300_000, 3_600_000).describe("How long an offer may be taken up."),
})
  .refine((file) => (parseUsd(file.min_usd) ?? 0n) <= (parseUsd(file.max_usd) ?? 0n))
  .meta({ title: "ranges whose `min_usd` is not above `max_usd`" })
  .prefault({})
  .describe("Payments by machines: MPP and x402.");

/** Converts the settings into the form that the service uses. */
export function paymentsOf(file: z.output<typeof payments>): PaymentSettings {
  return {
    rails: file.rails.map(railOf),
    minN: parseUsd(file.min_usd) ?? 0n,
    maxN: parseUsd(file.max_usd) ?? 0n,
    customDayN: parseUsd(file.custom_day_usd) ?? 0n,
    maxCustomDays: file.max_custom_days,
    waitMs: file.wait_ms,
    offerMs: file.offer_ms,
  };
}

function railOf(file: z.output<typeof payments>["rails"][number]): RailSettings {
  const base = {
    rpcUrl: file.rpc_url,
    chainId: file.chain_id,
    recipient: file.recipient,
    confirmations: file.confirmations,
    local: false,
  };
  const token = (address: string) => ({ address: address, name: "", version: "" });
  switch (file.kind) {
    case "tempo":
      return { ...base, kind: "tempo", token: token(file.token), modes: file.modes };
    case "evm":
      return {
        ...base,
        kind: "evm",
        token: file.token,
        walletKey: file.wallet_key,
        lowGasWei: BigInt(file.low_gas_wei),
        maxGasWei: BigInt(file.max_gas_wei),
      };
    case "session":
      return {
        ...base,
        kind: "session",
        token: token(file.token),
        walletKey: file.wallet_key,
        escrow: file.escrow ?? null,
        depositN: parseUsd(file.deposit_usd) ?? 0n,
        settleN: parseUsd(file.settle_usd) ?? 0n,
        settleMs: file.settle_after_ms,
      };
  }
}
