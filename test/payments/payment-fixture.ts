// Payments over the fake chain, as one process after the other would run them on the same store;
// and payers. Time is simulated and moves only in `run`.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { BENEFICIARIES } from "../../src/app/beneficiaries.ts";
import { NANO_PER_UNIT, type Purpose } from "../../src/core/billing/payment.ts";
import { OfferMacs } from "../../src/payments/offer-mac.ts";
import type {
  Order,
  PaidPurchase,
  PaymentDeclined,
  PaymentHeaders,
  Payments,
  RequestMark,
} from "../../src/payments/payments.ts";
import type { Rail } from "../../src/payments/rails/rail.ts";
import { startPayments } from "../../src/payments/start.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import type { Store } from "../../src/shared/store/store.ts";
import { ALONE } from "../fakes/jobs.ts";
import { quiet } from "../fakes/quiet.ts";
import { type SimulatedWorld, simulatedWorld } from "../fakes/runtime.ts";
import { FakeChain } from "./fake-chain.ts";
import { type FakeOffers, fakeProtocol } from "./fake-protocol.ts";
import { authorizationRail, type FakeRailParts, payerRail } from "./fake-rail.ts";
import { Dead, type Fate, mortalProcess } from "./mortal-process.ts";

/** A secret of tests. */
export const SECRET = "a secret of 32 bytes, for tests only";

/** Blocks that have to follow. */
export const DEPTH = 2;

/** What outlives the processes that take payments. */
export interface PaymentFixture {
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly chain: FakeChain;
  /** Starts a process. */
  start(options?: LifeOptions): Promise<Life>;
  /** Lets time go by until something has happened. */
  run<T>(work: Promise<T>): Promise<T>;
  /** Lets time go by; blocks are made. */
  pass(ms: number): Promise<void>;
}

/** How a process runs. */
export interface LifeOptions {
  readonly fate?: Fate;
  readonly node?: string;
  readonly waitMs?: number;
  readonly local?: boolean;
  readonly rails?: (parts: FakeRailParts) => readonly Rail[];
  readonly secret?: string;
}

/** One process. */
export interface Life {
  readonly payments: Payments;
  /** Ids of accounts and keys that were told to have changed. */
  readonly changed: readonly string[];
  readonly log: () => string;
  isDead(): boolean;
  /** Nothing that it does takes effect any more. */
  kill(): void;
  calls(): number;
  /** Rejects when it is dead: one who waits for an answer gets none. */
  readonly end: Promise<never>;
}

const BLOCK_MS = 1_000;
const STEP_MS = 25;
const MAX_STEPS = 200_000;
/** Turns of the event loop in which a long time goes by. */
const MAX_PASSES = 800;

/** A fixture with an empty chain. */
export function paymentFixture(store: Store, seed = 1): PaymentFixture {
  const runtime = simulatedWorld(seed);
  const chain = new FakeChain(() => runtime.wallMs(), `0xgenesis${seed}`);
  const made = new Map();
  const mine = (): void => {
    chain.mine();
    runtime.after(BLOCK_MS, mine);
  };
  mine();
  return {
    store,
    runtime,
    chain,
    start: (options = {}) => startLife({ store, runtime, chain, made }, options),
    async run<T>(work: Promise<T>): Promise<T> {
      let isOver = false;
      const end = (): void => {
        isOver = true;
      };
      work.then(end, end);
      for (let steps = 0; !isOver; steps++) {
        assert.ok(steps < MAX_STEPS, "it does not end");
        await quiet();
        if (!isOver) runtime.advance(STEP_MS);
      }
      return work;
    },
    async pass(ms) {
      const stepMs = Math.max(STEP_MS, ms / MAX_PASSES);
      for (let passed = 0; passed < ms; passed += stepMs) {
        await quiet();
        runtime.advance(stepMs);
      }
      await quiet();
    },
  };
}

interface LifeParts extends Pick<PaymentFixture, "store" | "runtime" | "chain"> {
  readonly made: Parameters<typeof fakeProtocol>[0];
}

async function startLife(
  { store, runtime, chain, made }: LifeParts,
  options: LifeOptions,
): Promise<Life> {
  const process = mortalProcess({
    store,
    runtime,
    fate: options.fate,
    lost: (what) => new Dead(what),
  });
  const { outside, write } = process;
  const changed: string[] = [];
  const tell = (id: string): void => void changed.push(id);
  const secret = options.secret ?? SECRET;
  const parts = {
    chain,
    outside,
    now: () => runtime.wallMs(),
    confirmations: DEPTH,
    local: options.local ?? false,
  };
  const payments = await startPayments({
    store: process.store,
    runtime: process.runtime,
    log: { error: write, warn: write, info: write },
    sealer: new Sealer(secret, secret === SECRET ? null : SECRET),
    beneficiaries: BENEFICIARIES,
    changes: { key: tell, account: tell },
    node: options.node ?? "main",
    claims: ALONE,
    rails: options.rails?.(parts) ?? [authorizationRail(parts), payerRail(parts)],
    protocol: fakeProtocol(made),
    offerMacs: new OfferMacs(SECRET, null),
    settings: {
      waitMs: options.waitMs ?? 5_000,
      offerMs: 60_000,
      minN: 0n,
      maxN: 0n,
      customDayN: 0n,
      maxCustomDays: 0,
    },
  });
  return {
    payments,
    changed,
    log: process.log,
    isDead: process.isDead,
    kill: process.kill,
    calls: process.calls,
    end: process.end,
  };
}

/** What somebody buys. */
export interface Wish {
  readonly purpose: Purpose;
  readonly units: bigint;
  /** Tells requests apart. */
  readonly request: string;
}

/** The mark of a request. */
export function markOf(request: string): RequestMark {
  const hash = createHash("sha256").update(request);
  return {
    fingerprint: hash.copy().digest("base64url"),
    digest: `sha-256=:${hash.digest("base64")}:`,
    resourceUrl: "https://svc.example/buy",
  };
}

/** The order of a wish. */
export function orderOf({ purpose, units, request }: Wish): Order {
  return {
    purpose,
    amountN: units * NANO_PER_UNIT,
    request: markOf(request),
    description: "something",
    keepsAuthorization: false,
  };
}

/** Asks for offers. */
export async function offersFor(
  { payments, end }: Pick<Life, "payments" | "end">,
  wish: Wish,
): Promise<FakeOffers> {
  const challenge = await Promise.race([payments.challenge(orderOf(wish)), end]);
  assert.ok(challenge !== null, "nothing is offered");
  return parseOffers(challenge.headers[1] ?? "");
}

function parseOffers(text: string): FakeOffers {
  return JSON.parse(text) as FakeOffers;
}

/** How somebody pays. */
export type How = "mpp" | "x402" | "pull" | "push";

/** A signed payment; for a push the money is on its way once this was called. */
export function sign(
  fixture: Pick<PaymentFixture, "runtime" | "chain">,
  offers: FakeOffers,
  given: Signing,
): PaymentHeaders {
  const { how, from, units, validMs = 120_000 } = given;
  const validBeforeMs = fixture.runtime.wallMs() + validMs;
  const signature = given.signature ?? `signed by ${from}`;
  if (how === "mpp" || how === "x402") {
    const [accepted] = offers.x402;
    const challenge = offers.mpp["fake-auth"] ?? "";
    const nonce =
      given.nonce ??
      (how === "mpp"
        ? `for ${challenge}`
        : `random ${Math.floor(fixture.runtime.random() * 1e12)}`);
    const payload = {
      authorization: { from, nonce, units: String(units), validBeforeMs },
      signature,
    };
    return {
      protocol: how,
      text: JSON.stringify(how === "mpp" ? { challenge, payload } : { accepted, payload }),
    };
  }
  const challenge = offers.mpp["fake-tx"] ?? "";
  const tx = { kind: "payer", from, units: String(units), memo: challenge, validBeforeMs } as const;
  if (how === "push") fixture.chain.send(tx);
  return { protocol: "mpp", text: JSON.stringify({ challenge, payload: { tx, mode: how } }) };
}

/** What a payment says. */
export interface Signing {
  readonly how: How;
  readonly from: string;
  readonly units: bigint;
  readonly validMs?: number;
  readonly nonce?: string;
  readonly signature?: string;
}

/** Brings a payment. */
export function bring(
  life: Pick<Life, "payments" | "end">,
  given: PaymentHeaders,
  wish: Wish,
): Promise<PaidPurchase | PaymentDeclined | { readonly kind: "refused" }> {
  return Promise.race([
    life.payments.take<{ readonly kind: "refused" }>(given, markOf(wish.request), async () =>
      orderOf(wish),
    ),
    life.end,
  ]);
}

const MAX_BRINGS = 100;

/**
 * Brings a payment again and again until it is not under way any more: however slow the store is.
 */
export async function insist(
  fixture: PaymentFixture,
  life: Life,
  { given, wish }: { readonly given: PaymentHeaders; readonly wish: Wish },
) {
  for (let brings = 0; ; brings++) {
    const taken = await fixture.run(bring(life, given, wish));
    if (wordOf(taken) !== "payment_pending" || brings >= MAX_BRINGS) return taken;
    await fixture.pass(2_000);
  }
}

/** What a taken payment came to, in one word. */
export function wordOf(
  taken: PaidPurchase | PaymentDeclined | { readonly kind: "refused" },
): string {
  return taken.kind === "declined" ? taken.fault.code : taken.kind;
}
