// Opens pay-per-call: composes the parts of each session rail, and implements the port over all of
// them. Loaded only if a session rail is configured, together with the libraries of its chain.
import type { Logger } from "pino";
import type { RateLimitSize } from "../../core/billing/gcra.ts";
import { NANO_PER_UNIT, nanoOf } from "../../core/billing/payment.ts";
import { usdText } from "../../core/billing/price.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { errorText } from "../../core/fields.ts";
import type { Runtime } from "../../runtime.ts";
import { Sealer } from "../../secrets/sealer.ts";
import type { JobClaims } from "../../shared/nodes/job-claims.ts";
import { resealOnce } from "../../shared/nodes/resealing.ts";
import type { Store } from "../../shared/store/store.ts";
import type { PaymentHeaders } from "../payments.ts";
import { Protocol } from "../protocol.ts";
import { EvmNode } from "../rails/evm/node.ts";
import type { SessionRailSettings } from "../rails/rail-kind.ts";
import { ClientReader } from "./chain/client-transaction.ts";
import { Escrow } from "./chain/escrow.ts";
import { addressOf, Settler } from "./chain/settlement-wallet.ts";
import { TransactionRecord } from "./chain/transaction-record.ts";
import { ChannelRecord, SEALED_CHANNELS } from "./channel-record.ts";
import { ChannelWorker } from "./channel-worker.ts";
import { ChannelWriter } from "./channel-writer.ts";
import { CredentialHandler } from "./credential-handler.ts";
import { parseHex } from "./descriptor.ts";
import { CallProcesses, type SessionProcess } from "./holds.ts";
import { LiveChannels } from "./live-channels.ts";
import { invalid, invalidAs, type Refused, refused } from "./refusals.ts";
import type { SessionRail } from "./session-rail.ts";
import {
  DECLARED_UNITS,
  type Hold,
  type PricedCall,
  type SessionRefusal,
  type Sessions,
  type SessionTaken,
} from "./sessions.ts";
import { isOffered, offerOf, type Snapshot, termsOf } from "./terms.ts";
import type { VoucherHold } from "./voucher-acceptor.ts";
import { VoucherChecker } from "./voucher-checker.ts";

/** What opening pay-per-call needs. */
export interface SessionsParts {
  readonly runtime: Runtime;
  readonly store: Store;
  /** Which node does what one does for all. */
  readonly claims: JobClaims;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** At least one. */
  readonly rails: readonly SessionRailSettings[];
  readonly realm: string;
  /** Secret of the service; keys derived from it sign challenges and seal channels. */
  readonly secret: string;
  readonly previousSecret: string | null;
  /** How long an offer is valid, and how long a request waits for its chain. */
  readonly offerMs: number;
  readonly waitMs: number;
  /** The rate limit of each channel. */
  readonly rateLimitSize: RateLimitSize;
  readonly process: SessionProcess;
}

/** Far shorter than the fifteen minutes that a payer has to wait for a deposit. */
const WATCH_MS = 30_000;
const MARK = "session";

/** Starts pay-per-call. Calls no chain; throws where the store does. */
export async function openSessions(parts: SessionsParts): Promise<Sessions> {
  const { log, store, claims } = parts;
  const sealer = new Sealer(parts.secret, parts.previousSecret);
  await resealOnce({ store, claims, log, sealer }, "channels", SEALED_CHANNELS);
  return new AllRails(parts, sealer);
}

interface OpenRail {
  readonly session: SessionRail;
  readonly credentialHandler: CredentialHandler;
  readonly watch: ChannelWorker;
}

function openRail(
  parts: SessionsParts,
  settings: SessionRailSettings,
  { sealer, vouchers }: { readonly sealer: Sealer; readonly vouchers: VoucherChecker },
): OpenRail {
  const { runtime, store, log, waitMs } = parts;
  const { walletKey, rpcUrl, chainId, confirmations, settleN, settleMs } = settings;
  const terms = termsOf(settings, addressOf(walletKey));
  const node = new EvmNode({ rpcUrl, chainId, runtime });
  const channels = new ChannelRecord(sealer);
  const live = new LiveChannels({ store, channels });
  const processes = new CallProcesses(runtime, parts.process);
  const session: SessionRail = {
    runtime,
    store,
    log,
    settings,
    terms,
    policy: { settleUnits: settleN / NANO_PER_UNIT, settleMs, watchMs: WATCH_MS },
    escrow: new Escrow({ node, terms, confirmations, runtime }),
    settler: new Settler({ node, terms, walletKey }),
    vouchers,
    channels,
    transactions: new TransactionRecord(sealer),
    live,
    writer: new ChannelWriter({ runtime, store, channels, processes, live }),
    waitMs,
  };
  const reader = new ClientReader(terms, node);
  const credentialHandler = new CredentialHandler(session, reader, parts.rateLimitSize);
  return { session, credentialHandler, watch: new ChannelWorker(session) };
}

class AllRails implements Sessions {
  readonly #parts: SessionsParts;
  readonly #protocol: Protocol;
  readonly #vouchers: VoucherChecker;
  readonly #rails: readonly OpenRail[];

  constructor(parts: SessionsParts, sealer: Sealer) {
    this.#parts = parts;
    this.#protocol = new Protocol(parts);
    const vouchers = new VoucherChecker(parts.runtime, (error) =>
      parts.log.error({ problem: errorText(error) }, "the thread that checks vouchers ended"),
    );
    this.#vouchers = vouchers;
    this.#rails = parts.rails.map((settings) => openRail(parts, settings, { sealer, vouchers }));
  }

  async challenge(call: PricedCall | null, channelHint: string | null): Promise<SessionRefusal> {
    const units = call?.units ?? DECLARED_UNITS;
    const snapshot = await this.#snapshot(channelHint, units);
    const message = `this call costs ${usdText(nanoOf(units))} USD, and nothing has been paid yet`;
    return this.#refusal(fault("payment_required", message), { units, snapshot });
  }

  async take(given: PaymentHeaders, call: PricedCall | null): Promise<SessionTaken> {
    const taken = await this.#take(this.#protocol.read(given), call);
    switch (taken.kind) {
      case "refused":
        return this.#refused(taken, call);
      case "hold":
        return this.#hold(taken, call);
      case "recorded":
      case "managed":
        return taken;
    }
  }

  gauges(): ReturnType<Sessions["gauges"]> {
    const rails = this.#rails;
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
    await Promise.all([...this.#rails.map(({ watch }) => watch.close()), this.#vouchers.close()]);
  }

  async #take(read: ReturnType<Protocol["read"]>, call: PricedCall | null) {
    if ("kind" in read) return invalidAs(read);
    if (read.protocol !== "mpp")
      return refused(
        fault("payment_invalid", "calls are paid for by MPP `tempo`/`session`, not by x402"),
      );
    const { challenge, payload } = read;
    const rail = this.#rails.find((candidate) => isOffered(candidate.session.terms, challenge));
    if (rail === undefined)
      return invalid(
        "invalid-challenge",
        "The challenge is not for pay-per-call: answer a challenge of this response.",
      );
    const expiresMs = challenge.expires === null ? Number.NaN : Date.parse(challenge.expires);
    return rail.credentialHandler.take({
      payload,
      challengeId: challenge.id,
      expired: !(this.#parts.runtime.wallMs() < expiresMs),
      call,
    });
  }

  /** A hold whose refusals carry challenges as well. */
  #hold(hold: VoucherHold, call: PricedCall | null): Hold {
    return {
      kind: "hold",
      release: () => hold.release(),
      settle: async (end) => {
        const ended = await hold.settle(end);
        return ended.kind === "refused" ? this.#refused(ended, call) : ended;
      },
    };
  }

  /** The refusal of a credential. A payer who is reminded of a channel has signed for it. */
  #refused({ fault: why, snapshot }: Refused, call: PricedCall | null): SessionRefusal {
    const units = call?.units ?? DECLARED_UNITS;
    const isWrong = why.code === "payment_invalid" && snapshot === null;
    return { ...this.#refusal(why, { units, snapshot }), isWrong };
  }

  /** The channel that a caller names, for its challenge; null = none that can be used. */
  async #snapshot(hint: string | null, units: bigint): Promise<Snapshot | null> {
    if (hint === null || !/^0x[0-9a-fA-F]{64}$/.test(hint)) return null;
    for (const { credentialHandler } of this.#rails) {
      const found = await credentialHandler.remind(parseHex(hint), units);
      if (found !== null) return found;
    }
    return null;
  }

  /** A refusal; with a 402 a challenge of each rail. */
  #refusal(
    why: Fault,
    { units, snapshot }: { readonly units: bigint; readonly snapshot: Snapshot | null },
  ): SessionRefusal {
    const refusal = { kind: "refusal", fault: why, headers: [], isWrong: false } as const;
    if (why.status !== PAYMENT_REQUIRED) return refusal;
    const offers = this.#rails.map(({ session: { terms } }) =>
      offerOf(terms, units > 0n ? units : 1n, isOf(terms.chainId, snapshot) ? snapshot : null),
    );
    const headers = this.#protocol.challenge({
      offers,
      x402: [],
      digest: null,
      fingerprint: MARK,
      resourceUrl: "",
      description: "One call",
      expiresAtMs: this.#parts.runtime.wallMs() + this.#parts.offerMs,
      keepsAuthorization: false,
    });
    return { ...refusal, headers };
  }
}

const PAYMENT_REQUIRED = 402;

function isOf(chainId: number, snapshot: Snapshot | null): boolean {
  return snapshot?.record.chain_id === BigInt(chainId);
}
