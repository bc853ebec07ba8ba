// Payments that are opened when somebody first asks for an offer or pays. Their libraries are
// heavy, and a demonstration with local rails may never need them. Loads none of them itself.
import type { Store } from "../shared/store/store.ts";
import type { PaymentRange, Payments } from "./payments.ts";
import { NO_PURCHASES } from "./purchase/all-purchases.ts";
import type { SessionGauges, Sessions } from "./session/sessions.ts";

const NO_CHANNELS: SessionGauges = { channels: 0, held: 0, chainDown: false, walletLow: false };

/** Whether a store holds purchases or channels, which have to be continued. */
export async function holdsPayments({ db }: Pick<Store, "db">): Promise<boolean> {
  const tables = ["purchase", "session_channel"] as const;
  const rows = await Promise.all(
    tables.map((table) => db.selectFrom(table).select("id").limit(1).executeTakeFirst()),
  );
  return rows.some((row) => row !== undefined);
}

/** Purchases that are opened at the first order, payment, or look at the wallets. */
export function paymentsOnDemand(range: PaymentRange, open: () => Promise<Payments>): Payments {
  const payments = new OnDemand(open);
  return {
    range,
    challenge: async (order) => (await payments.open()).challenge(order),
    take: async (given, request, order) => (await payments.open()).take(given, request, order),
    purchase: async (id) => (await payments.open()).purchase(id),
    gauges: () => payments.opened?.gauges() ?? { ...NO_PURCHASES, wallets: [] },
    wallets() {
      if (payments.opened !== null) return payments.opened.wallets();
      // Nobody waits: the next look shows them, and tries again if they could not be opened.
      payments.open().catch(() => {});
      return [];
    },
    close: () => payments.close(),
  };
}

/** Pay-per-call that is opened at the first challenge or credential. */
export function sessionsOnDemand(open: () => Promise<Sessions>): Sessions {
  const sessions = new OnDemand(open);
  return {
    challenge: async (call, hint) => (await sessions.open()).challenge(call, hint),
    take: async (given, call) => (await sessions.open()).take(given, call),
    gauges: () => sessions.opened?.gauges() ?? NO_CHANNELS,
    close: () => sessions.close(),
  };
}

/** Opens once, and again after a failure. */
class OnDemand<T extends { close(): Promise<void> }> {
  readonly #open: () => Promise<T>;
  #opening: Promise<T> | null = null;
  #isClosed = false;
  /** Null = not yet. */
  opened: T | null = null;

  constructor(open: () => Promise<T>) {
    this.#open = open;
  }

  open(): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error("the service is ending"));
    this.#opening ??= this.#openOnce();
    return this.#opening;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await (await this.#opening?.catch(() => null))?.close();
  }

  async #openOnce(): Promise<T> {
    try {
      this.opened = await this.#open();
      return this.opened;
    } catch (error) {
      this.#opening = null;
      throw error;
    }
  }
}
