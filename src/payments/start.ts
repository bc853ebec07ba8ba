// Builds payments: offers, acceptance, and the worker behind them. Knows rails by their port only.

import type { Logger } from "pino";
import type { Invalidations } from "../core/billing/invalidations.ts";
import { unitsOf } from "../core/billing/payment.ts";
import type { Runtime } from "../runtime.ts";
import { Sealer } from "../secrets/sealer.ts";
import type { JobClaims } from "../shared/nodes/job-claims.ts";
import { resealOnce } from "../shared/nodes/resealing.ts";
import type { Store } from "../shared/store/store.ts";
import { type AcceptParts, acceptPayment, Waiters } from "./accept.ts";
import { OfferMacs } from "./offer-mac.ts";
import type { Order, PaymentChallenge, PaymentRange, Payments, WalletReport } from "./payments.ts";
import { Protocol } from "./protocol.ts";
import type { AdvanceParts } from "./purchase/advance.ts";
import { countPurchases, NO_PURCHASES } from "./purchase/all-purchases.ts";
import type { Beneficiaries } from "./purchase/fulfilment.ts";
import { SEALED_PURCHASES, viewOf } from "./purchase/record.ts";
import { blankSecrets } from "./purchase/retention.ts";
import { byId, resumeAll } from "./purchase/rows.ts";
import { PurchaseScheduler } from "./purchase/scheduler.ts";
import { RailCalls } from "./rail-call.ts";
import type { Rail } from "./rails/rail.ts";
import { openRail, type PaymentSettings } from "./rails/rails.ts";
import { unavailable } from "./refusal.ts";
import { startWorker } from "./tasks.ts";
import { Wallets } from "./wallets.ts";

/** What payments need. */
export interface PaymentParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly log: Pick<Logger, "error" | "warn" | "info">;
  readonly sealer: Sealer;
  readonly changes: Invalidations;
  readonly beneficiaries: Beneficiaries;
  /** The node that leases purchases: the same after a restart, where that is known. */
  readonly node: string;
  /** Which node does what one does for all. */
  readonly claims: JobClaims;
  readonly rails: readonly Rail[];
  readonly protocol: Pick<Protocol, keyof Protocol>;
  readonly offerMacs: OfferMacs;
  readonly settings: Pick<PaymentSettings, "waitMs" | "offerMs"> & PaymentRange;
}

/** Payments being accepted at once. */
const MAX_ACCEPTING = 512;
/** Of those, requests that wait for payments recorded before. */
const REPEATS = { each: 4, all: 128 };
const TICK_MS = 1_000;
const SWEEP_MS = 15_000;
const COUNT_MS = 10_000;
const BLANK_MS = 60_000;

/** Starts payments; the worker continues those under way. Throws where the store does. */
export async function startPayments(parts: PaymentParts): Promise<Payments> {
  const { store, runtime, log, rails, settings } = parts;
  await resumeAll(parts, runtime.wallMs());
  const onError = (error: unknown): void =>
    log.warn(
      { problem: nameOf(error) },
      "purchases are under way, and the store does not answer as it should",
    );
  const advanceParts: AdvanceParts = {
    ...parts,
    railCalls: new RailCalls(parts),
    notice: noticing(log),
  };
  const scheduler = new PurchaseScheduler({ ...advanceParts, onError });
  const wallets = new Wallets(advanceParts);
  let counts = NO_PURCHASES;
  const count = async (): Promise<void> => {
    counts = await countPurchases(store);
  };
  const tasks = [
    ...scheduler.ticks.map((run) => ({ everyMs: TICK_MS, run })),
    ...rails.map((rail) => ({ everyMs: SWEEP_MS, run: () => wallets.sweep(rail) })),
    { everyMs: COUNT_MS, run: count },
    { everyMs: BLANK_MS, run: () => blankOnce(parts) },
  ];
  const worker = startWorker(runtime, tasks, onError);
  const canSettle = (rail: Rail): boolean => wallets.canSettle(rail);
  const acceptParts: AcceptParts = {
    ...advanceParts,
    protocol: parts.protocol,
    offerMacs: parts.offerMacs,
    scheduler,
    waitMs: settings.waitMs,
    waiters: new Waiters(REPEATS),
    canSettle,
  };
  let underWay = 0;
  let isClosed = false;
  return {
    range: settings,
    challenge: (order) =>
      challenge({ ...parts, railCalls: advanceParts.railCalls }, order, canSettle),
    async take(given, request, order) {
      if (isClosed) return unavailable("the service is ending");
      if (underWay >= MAX_ACCEPTING) return unavailable("too many payments are being taken");
      underWay++;
      try {
        return await acceptPayment(acceptParts, { given, request }, order);
      } finally {
        underWay--;
      }
    },
    async purchase(id) {
      const row = await byId(store, id);
      return row === null ? null : viewOf(row);
    },
    wallets: () => walletReports(rails, wallets),
    gauges: () => ({ ...counts, wallets: gaugesOf(walletReports(rails, wallets)) }),
    async close() {
      isClosed = true;
      await Promise.all([scheduler.close(), worker.close()]);
    },
  };
}

/** Secrets that are no longer shown are removed by one node at a time. */
async function blankOnce(parts: PaymentParts): Promise<void> {
  const run = () => blankSecrets(parts, parts.runtime.wallMs());
  await parts.claims.runIfDue({ name: "blank_secrets", everyMs: 0, run });
}

function gaugesOf(reports: readonly WalletReport[]) {
  return reports.flatMap(({ chainId, wallet }) =>
    wallet === null ? [] : [{ chainId, low: wallet.low, empty: wallet.empty }],
  );
}

function walletReports(rails: readonly Rail[], { states }: Wallets): readonly WalletReport[] {
  return rails.map((rail) => {
    const state = states.get(rail);
    const { method, chainId, recipient, token } = rail;
    const named = { rail: method, chainId, recipient, token };
    if (state === undefined) return { ...named, wallet: null };
    const { id, balanceWei, low, empty, dear } = state;
    return { ...named, wallet: { address: id.split(":")[1] ?? id, balanceWei, low, empty, dear } };
  });
}

/** Offers of every rail that can settle them, as far as is known; null = none can. */
async function challenge(
  {
    rails,
    railCalls,
    protocol,
    offerMacs,
    runtime,
    settings,
  }: PaymentParts & Pick<AdvanceParts, "railCalls">,
  order: Order,
  canSettle: (rail: Rail) => boolean,
): Promise<PaymentChallenge | null> {
  const units = unitsOf(order.amountN);
  if (units === null || units <= 0n)
    throw new RangeError(`an order of ${order.amountN} nano-USD is no amount of whole base units`);
  const able = rails.filter(canSettle);
  const reached = await Promise.all(
    able.map(
      async (rail) =>
        !(await railCalls.isStillUnreachable(rail)) &&
        (await railCalls.call(rail, () => rail.network())).kind === "result",
    ),
  );
  const offering = able.filter((_, index) => reached[index]);
  if (offering.length === 0) return null;
  const { request, description, keepsAuthorization } = order;
  const expiresAtMs = runtime.wallMs() + settings.offerMs;
  const x402 = offering
    .map((rail) => rail.x402Offer(units, settings.offerMs))
    .filter((offer) => offer !== null);
  const headers = protocol.challenge({
    ...request,
    description,
    keepsAuthorization,
    expiresAtMs,
    offers: offering.map((rail) => rail.offer(units)),
    x402: x402.map((offer) => offerMacs.signed(offer, request.fingerprint, expiresAtMs)),
  });
  return { headers };
}

/** Notices that are logged once each. */
const MAX_TOPICS = 64;

function noticing(log: PaymentParts["log"]): (topic: string, text: string) => void {
  const logged = new Set<string>();
  return (topic, text) => {
    if (logged.has(topic) || logged.size >= MAX_TOPICS) return;
    logged.add(topic);
    log.error({ topic: topic }, text);
  };
}

/** The kind of an error: texts of the store may hold the values being written. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error ? `${error.name} ${String(error.code)}` : error.name;
}

/** What opening payments needs. */
export interface OpenPaymentsParts
  extends Omit<PaymentParts, "sealer" | "rails" | "protocol" | "offerMacs" | "settings"> {
  readonly settings: PaymentSettings;
  /** The realm of MPP challenges. */
  readonly realm: string;
  /** Secret of the service; keys derived from it sign offers and seal purchases. */
  readonly secret: string;
  readonly previousSecret: string | null;
}

/** Opens payments without waiting for any chain; throws where the store does. */
export async function openPayments({
  settings,
  realm,
  secret,
  previousSecret,
  ...parts
}: OpenPaymentsParts): Promise<Payments> {
  const sealer = new Sealer(secret, previousSecret);
  await resealOnce({ ...parts, sealer }, "purchases", SEALED_PURCHASES);
  const rails = (
    await Promise.all(
      settings.rails.map((rail) => openRail(rail, { runtime: parts.runtime, realm })),
    )
  ).filter((rail) => rail !== null);
  const protocol = new Protocol({ realm, secret, previousSecret });
  return startPayments({
    ...parts,
    settings,
    sealer,
    rails,
    protocol,
    offerMacs: new OfferMacs(secret, previousSecret),
  });
}
