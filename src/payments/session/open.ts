// Opens pay-per-call: what each session rail works with, and one door to all of them. Loaded only
// where a session rail is configured, and brings the libraries of its chains along.
import type { Logger } from "pino";
import { createAddressLimit } from "../../core/billing/address-limit.ts";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { NANO_PER_UNIT, nanoOf, type SessionRailSettings } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { Runtime } from "../../runtime.ts";
import { createSealer } from "../../secrets/sealer.ts";
import type { Store } from "../../store/store.ts";
import { challengeSecrets } from "../open.ts";
import { createProtocol, type Protocol, type ReadPayment } from "../protocol.ts";
import { createPaymentChain } from "../rails/chain.ts";
import { createChannelFunding } from "./channel-funding.ts";
import { createChannelRecord } from "./channel-record.ts";
import { type ChannelWorker, startChannelWorker } from "./channel-worker.ts";
import { createChargeBatcher } from "./charge-batcher.ts";
import { createClientReader } from "./client-transaction.ts";
import {
  type CredentialHandler,
  createCredentialHandler,
  type SessionCredential,
} from "./credential-handler.ts";
import { parseHex } from "./descriptor.ts";
import { createEscrow } from "./escrow.ts";
import { createLiveChannels } from "./live-channels.ts";
import { invalid, invalidAs, refused } from "./refusals.ts";
import { resealChannels } from "./reseal.ts";
import type { SessionRail } from "./session-rail.ts";
import {
  DECLARED_UNITS,
  type Hold,
  type PricedCall,
  type SessionCaller,
  type SessionRefusal,
  type Sessions,
} from "./sessions.ts";
import { addressOf, createSettler } from "./settlement-wallet.ts";
import { isOffered, offerOf, type Snapshot, termsOf } from "./terms.ts";
import { createTransactionRecord } from "./transaction-record.ts";
import { createVoucherAcceptor } from "./voucher-acceptor.ts";
import { createVoucherChecker, type VoucherChecker } from "./voucher-checker.ts";

/** What pay-per-call is opened with. */
export interface SessionsParts {
  readonly runtime: Runtime;
  readonly store: Store;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** At least one. */
  readonly rails: readonly SessionRailSettings[];
  readonly realm: string;
  /** Of the service; what is derived from it signs challenges and seals channels. */
  readonly secret: string;
  readonly previousSecret: string | null;
  /** How long an offer may be taken up, and how long a request waits for its chain. */
  readonly offerMs: number;
  readonly waitMs: number;
  /** Requests of each channel. */
  readonly rateLimitSize: RateLimitSize;
  /** Between two looks at a channel that owes something. */
  readonly watchMs?: number;
}

/**
 * Challenges that one address may ask for without paying; each call that is paid for gives one
 * back.
 */
const CHALLENGES: RateLimitSize = { perSecond: 10, burst: 200 };
/** Credentials that are not right which one address may send. */
const INVALID: RateLimitSize = { perSecond: 0.5, burst: 64 };
/**
 * Credentials whose signatures are checked for one address; each call that is paid for gives one
 * back.
 */
const CREDENTIALS: RateLimitSize = { perSecond: 20, burst: 400 };
/** Far shorter than the quarter of an hour for which a payer has to wait for a deposit. */
const WATCH_MS = 30_000;
const MARK = "session";

/** Starts pay-per-call. Asks no chain; throws where the store does. */
export async function openSessions(parts: SessionsParts): Promise<Sessions> {
  const { runtime, log, realm, secret, previousSecret, store } = parts;
  const resealed =
    previousSecret === null ? 0 : await resealChannels(store, createSealer(secret, previousSecret));
  if (resealed > 0)
    log.info({ resealed }, "channels of pay-per-call are sealed with the present secret");
  const protocol = createProtocol({ realm, ...challengeSecrets(secret, previousSecret) });
  const vouchers = createVoucherChecker({
    runtime,
    onError: (error) =>
      log.error(
        { problem: error instanceof Error ? error.message : String(error) },
        "the thread that checks vouchers ended",
      ),
  });
  const rails = parts.rails.map((settings) => openRail(parts, settings, vouchers));
  return new AllRails(parts, { protocol, rails, vouchers });
}

interface OpenRail {
  readonly session: SessionRail;
  readonly credentialHandler: CredentialHandler;
  readonly watch: ChannelWorker;
}

function openRail(
  parts: SessionsParts,
  settings: SessionRailSettings,
  vouchers: VoucherChecker,
): OpenRail {
  const { runtime, store, log, waitMs } = parts;
  const { walletKey, rpcUrl, chainId, confirmations, settleN, settleMs } = settings;
  const sealer = createSealer(parts.secret, parts.previousSecret);
  const terms = termsOf(settings, addressOf(walletKey));
  const chain = createPaymentChain({ rpcUrl, chainId, runtime });
  const channels = createChannelRecord(sealer);
  const session: SessionRail = {
    runtime,
    store,
    log,
    settings,
    terms,
    policy: { settleUnits: settleN / NANO_PER_UNIT, settleMs, watchMs: parts.watchMs ?? WATCH_MS },
    escrow: createEscrow({ chain, terms, confirmations, runtime }),
    settler: createSettler({ chain, terms, walletKey }),
    vouchers,
    channels,
    transactions: createTransactionRecord(sealer),
    live: createLiveChannels({ store, channels }),
    waitMs,
  };
  const voucherAcceptor = createVoucherAcceptor({
    session,
    charges: createChargeBatcher(session),
    rateLimitSize: parts.rateLimitSize,
  });
  return {
    session,
    credentialHandler: createCredentialHandler({
      session,
      voucherAcceptor,
      openings: createChannelFunding({ session, reader: createClientReader(terms, chain) }),
    }),
    watch: startChannelWorker(session),
  };
}

interface Opened {
  readonly protocol: Protocol;
  readonly rails: readonly OpenRail[];
  readonly vouchers: VoucherChecker;
}

class AllRails implements Sessions {
  readonly #parts: SessionsParts;
  readonly #opened: Opened;
  readonly #challenges = createAddressLimit(CHALLENGES);
  readonly #invalid = createAddressLimit(INVALID);
  readonly #credentials = createAddressLimit(CREDENTIALS);

  constructor(parts: SessionsParts, opened: Opened) {
    this.#parts = parts;
    this.#opened = opened;
  }

  async ask(call: PricedCall | null, caller: SessionCaller): Promise<SessionRefusal> {
    const retryAfterMs = this.#challenges.take(caller.address, this.#parts.runtime.now());
    if (retryAfterMs > 0)
      return {
        kind: "refusal",
        fault: fault("rate_limit_exceeded", "this address has asked for too many challenges", {
          retryAfterMs,
        }),
        headers: [],
      };
    const units = call?.units ?? DECLARED_UNITS;
    const snapshot = await this.#snapshot(caller.hint, units);
    return this.#challenged(
      fault(
        "payment_required",
        `this call costs ${usdText(nanoOf(units))} USD, and nothing has been paid yet`,
      ),
      { units, snapshot },
    );
  }

  async take(...[given, call, caller]: Parameters<Sessions["take"]>): ReturnType<Sessions["take"]> {
    const tooMany = this.#enter(caller.address);
    if (tooMany !== null) return { kind: "refusal", fault: tooMany, headers: [] };
    let isWrong = false;
    const taken = await this.#take(this.#opened.protocol.read(given), call)
      .then((taken) => {
        // A payer who is reminded of a channel has signed for it: what was wrong is not a guess.
        isWrong =
          taken.kind === "refused" &&
          taken.fault.code === "payment_invalid" &&
          taken.snapshot === null;
        return taken;
      })
      .finally(() => {
        if (!isWrong) this.#invalid.giveBack(caller.address);
      });
    switch (taken.kind) {
      case "refused":
        return this.#challenged(taken.fault, {
          units: call?.units ?? DECLARED_UNITS,
          snapshot: taken.snapshot,
        });
      case "hold":
        this.#challenges.giveBack(caller.address);
        return this.#hold(taken, call, caller.address);
      case "recorded":
      case "managed":
        return taken;
    }
  }

  /**
   * Counts a credential as wrong until it is found to be right: many that come at one time are
   * counted before any is checked.
   */
  #enter(address: string): Fault | null {
    const nowMs = this.#parts.runtime.now();
    const wrongMs = this.#invalid.take(address, nowMs);
    if (wrongMs > 0)
      return fault("rate_limit_exceeded", "too many payments from this address were not right", {
        retryAfterMs: wrongMs,
      });
    const retryAfterMs = this.#credentials.take(address, nowMs);
    if (retryAfterMs === 0) return null;
    this.#invalid.giveBack(address);
    return fault("rate_limit_exceeded", "too many payments from this address paid for nothing", {
      retryAfterMs,
    });
  }

  gauges(): ReturnType<Sessions["gauges"]> {
    const { rails } = this.#opened;
    const sum = (of: (rail: OpenRail) => number): number =>
      rails.reduce((total, rail) => total + of(rail), 0);
    return {
      channels: sum((rail) => rail.session.live.size),
      held: sum((rail) => rail.session.live.held),
      chainDown: rails.some((rail) => rail.watch.chainDown),
      walletLow: rails.some((rail) => rail.watch.walletLow),
    };
  }

  async close(): Promise<void> {
    const { rails, vouchers } = this.#opened;
    await Promise.all([...rails.map((rail) => rail.watch.close()), vouchers.close()]);
  }

  async #take(
    read:
      | ReadPayment
      | { readonly kind: "bad_payment"; readonly problem: string; readonly reason: string },
    call: PricedCall | null,
  ) {
    if ("kind" in read) return invalidAs(read);
    if (read.protocol !== "mpp")
      return refused(
        fault("payment_invalid", "calls are paid for by MPP `tempo`/`session`, not by x402"),
      );
    const { challenge, payload } = read;
    const rail = this.#opened.rails.find((candidate) =>
      isOffered(candidate.session.terms, challenge),
    );
    if (rail === undefined)
      return invalid(
        "invalid-challenge",
        "The challenge is not for pay-per-call: answer a challenge of this response.",
      );
    const expiresMs = challenge.expires === null ? Number.NaN : Date.parse(challenge.expires);
    const credential: SessionCredential = {
      payload,
      challengeId: challenge.id,
      expired: !(this.#parts.runtime.wallMs() < expiresMs),
      call,
    };
    return rail.credentialHandler.take(credential);
  }

  /** A hold whose refusals carry challenges as well. */
  #hold(
    hold: Extract<Awaited<ReturnType<CredentialHandler["take"]>>, { readonly kind: "hold" }>,
    call: PricedCall | null,
    address: string,
  ): Hold {
    return {
      kind: "hold",
      release: () => hold.release(),
      settle: async (end) => {
        const ended = await hold.settle(end);
        if (ended.kind === "bill" && ended.chargedUnits > 0n) this.#credentials.giveBack(address);
        return ended.kind === "refused"
          ? this.#challenged(ended.fault, {
              units: call?.units ?? DECLARED_UNITS,
              snapshot: ended.snapshot,
            })
          : ended;
      },
    };
  }

  /**
   * The channel that a caller says to have, as it is reminded of it; null = there is none to be
   * used.
   */
  async #snapshot(hint: string | null, units: bigint): Promise<Snapshot | null> {
    if (hint === null || !/^0x[0-9a-fA-F]{64}$/.test(hint)) return null;
    for (const { credentialHandler } of this.#opened.rails) {
      const found = await credentialHandler.remind(parseHex(hint), units);
      if (found !== null) return found;
    }
    return null;
  }

  #challenged(
    why: Fault,
    { units, snapshot }: { readonly units: bigint; readonly snapshot: Snapshot | null },
  ): SessionRefusal {
    if (why.status !== PAYMENT_REQUIRED) return { kind: "refusal", fault: why, headers: [] };
    const { protocol, rails } = this.#opened;
    const offers = rails.map(({ session: { terms } }) =>
      offerOf(terms, units > 0n ? units : 1n, isOf(terms.chainId, snapshot) ? snapshot : null),
    );
    const headers = protocol.challenge({
      offers,
      x402: [],
      digest: null,
      fingerprint: MARK,
      resourceUrl: "",
      description: "One call",
      expiresAtMs: this.#parts.runtime.wallMs() + this.#parts.offerMs,
      keepsAuthorization: false,
    });
    return { kind: "refusal", fault: why, headers };
  }
}

const PAYMENT_REQUIRED = 402;

function isOf(chainId: number, snapshot: Snapshot | null): boolean {
  return snapshot !== null && snapshot.chainId === chainId;
}
