// The worker of channels: checks every channel that has not ended, whichever process opened it.
// Settles what is owed, closes channels whose payers want the deposit back, and finishes what a
// crash has interrupted. A failure of one channel stops no other.

import { lesserOf } from "../../core/billing/payment.ts";
import { errorText } from "../../core/fields.ts";
import { pause } from "../../runtime.ts";
import { ChainFailure, unlessUnreachable } from "../rails/chain.ts";
import { startWorker, type Worker } from "../tasks.ts";
import { forgetCalls } from "./call-record.ts";
import { type Seen, syncWithChain } from "./chain-sync.ts";
import { collectable, wholeMs } from "./channel.ts";
import { type SessionChannel, TAKEN_AT_ONCE, TAKEN_MS } from "./channel-record.ts";
import { confirm } from "./confirmation.ts";
import { channelIdOf } from "./descriptor.ts";
import { forgetHolds } from "./holds.ts";
import { changeChannel, type SessionRail } from "./session-rail.ts";
import { beginClose, beginSettle, isIdle } from "./settlement.ts";
import { isOurs } from "./terms.ts";

const TICK_MS = 1_000;
const PASSES_A_TICK = 4;
const SIDE_BY_SIDE = 8;
const IDLE_MS = 600_000;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 60_000;
/** Checks of a channel in a row without progress, after which the failure is logged. */
const MAX_VAIN = 5;
const KEPT_MS = 3_600_000;
const FORGET_MS = 60_000;
const WALLET_MS = 60_000;
/**
 * If the chain returns deposits sooner than this, a payer may have the deposit before the channel
 * is closed.
 */
const SHORTEST_GRACE_MS = 300_000;
/** Ten cents: enough for some tens of transactions. */
const LOW_UNITS = 100_000n;
/** Channels of an earlier configuration that are logged. */
const MAX_LOGGED = 10_000;
const PUT_OFF_MS = 600_000;

/** Checks the channels of one rail in the background, from its creation on. */
export class ChannelWorker {
  readonly #rail: SessionRail;
  readonly #worker: Worker;
  /** Ids of channels of an earlier configuration that were logged. */
  readonly #foreign = new Set<string>();
  #isClosed = false;
  #isGraceKnown = false;
  #chainDown = false;
  #walletLow = false;

  constructor(rail: SessionRail) {
    this.#rail = rail;
    const tasks = [
      { everyMs: TICK_MS, run: () => this.#tick() },
      { everyMs: FORGET_MS, run: () => this.#forget() },
      { everyMs: WALLET_MS, run: () => this.#lookAround() },
    ];
    this.#worker = startWorker(rail.runtime, tasks, (error) =>
      rail.log.warn(
        { problem: errorText(error) },
        "channels of pay-per-call cannot be looked after right now",
      ),
    );
  }

  get chainDown(): boolean {
    return this.#chainDown;
  }

  get walletLow(): boolean {
    return this.#walletLow;
  }

  /** Stops; resolves when no check is in flight. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker.close();
  }

  async #tick(): Promise<void> {
    const { store, transactions, terms, writer } = this.#rail;
    for (let pass = 0; pass < PASSES_A_TICK && !this.#isClosed; pass++)
      if ((await this.#processDue()) < TAKEN_AT_ONCE) break;
    await writer.releaseAgain();
    for (const transaction of await transactions.leftOver(store.db, terms.chainId))
      await unlessUnreachable(confirm(this.#rail, transaction, false));
  }

  async #forget(): Promise<void> {
    const { runtime, store } = this.#rail;
    while (!this.#isClosed && (await forgetCalls(store, runtime.wallMs() - KEPT_MS)))
      await pause(runtime, 0);
    while (!this.#isClosed && (await forgetHolds(store))) await pause(runtime, 0);
  }

  /** Checks the channels that are due, a bounded number; returns how many there were. */
  async #processDue(): Promise<number> {
    const { runtime, store, channels, terms, log } = this.#rail;
    const now = wholeMs(runtime.wallMs());
    const taken = await store.transaction((tx) => channels.takeDue(tx, terms.chainId, now));
    for (const id of taken.unreadable)
      log.error(
        { channel: id },
        "a channel cannot be read: start svc with the secret that it was written with",
      );
    const due = await this.#leaveForeign(taken.channels);
    if (due.length > 0) {
      const down = (await unlessUnreachable(this.#lookAtAll(due, now))) === "unreachable";
      if (down) {
        this.#report(true);
        await postpone(this.#rail, due, LAST_RETRY_MS / 10);
      }
    }
    return taken.channels.length + taken.unreadable.length;
  }

  async #lookAtAll(due: readonly SessionChannel[], now: bigint): Promise<void> {
    const { escrow } = this.#rail;
    const network = await escrow.network();
    const head = await escrow.head();
    const ids = due.map(({ id }) => id);
    const states = await escrow.states(ids, head.number);
    this.#report(false);
    await sideBySide(due, async (channel, at) => {
      const onChain = states[at];
      if (onChain === undefined || this.#isClosed) return;
      if (channel.network === network)
        await lookAt(this.#rail, channel, { onChain, head, takenUntil: now + TAKEN_MS });
      else await endOtherNetwork(this.#rail, channel);
    });
  }

  /**
   * Postpones channels of an earlier configuration: to another payee, wallet, token or contract,
   * for which our wallet cannot sign. Returns the others.
   */
  async #leaveForeign(due: readonly SessionChannel[]): Promise<readonly SessionChannel[]> {
    const { terms, log } = this.#rail;
    const foreign = due.filter(
      ({ id, descriptor }) =>
        !isOurs(terms, descriptor) || channelIdOf(descriptor, terms.escrow, terms.chainId) !== id,
    );
    if (foreign.length === 0) return due;
    for (const { id } of foreign) {
      if (this.#foreign.has(id) || this.#foreign.size >= MAX_LOGGED) continue;
      this.#foreign.add(id);
      log.error(
        { channel: id },
        "a channel is to another recipient, wallet, token or contract than is configured: it is " +
          "left alone. Configure those again to settle it",
      );
    }
    await postpone(this.#rail, foreign, PUT_OFF_MS);
    return due.filter((channel) => !foreign.includes(channel));
  }

  /**
   * Checks that concern no single channel: whether the contract's grace period is long enough, and
   * whether the wallet can pay for its transactions.
   */
  async #lookAround(): Promise<void> {
    const { escrow, settler, log } = this.#rail;
    const graceMs = this.#isGraceKnown ? null : await unlessUnreachable(escrow.graceMs());
    const balance = await unlessUnreachable(escrow.balance(settler.address));
    if (graceMs === "unreachable" || balance === "unreachable") return;
    this.#isGraceKnown = true;
    if (graceMs !== null && graceMs < SHORTEST_GRACE_MS)
      log.error(
        { grace_ms: graceMs },
        "the contract of pay-per-call gives deposits back too soon: calls may go unpaid",
      );
    const low = balance < LOW_UNITS;
    const about = { wallet: settler.address };
    if (low && !this.#walletLow)
      log.error(
        about,
        "the wallet that settles pay-per-call holds too little to pay for its transactions",
      );
    if (!low && this.#walletLow)
      log.info(about, "the wallet that settles pay-per-call can pay for its transactions again");
    this.#walletLow = low;
  }

  #report(down: boolean): void {
    const { log, terms } = this.#rail;
    const about = { chain_id: terms.chainId };
    if (down && !this.#chainDown)
      log.error(
        about,
        "the chain of pay-per-call cannot be asked: nothing is settled until it can",
      );
    if (!down && this.#chainDown) log.info(about, "the chain of pay-per-call answers again");
    this.#chainDown = down;
  }
}

/** Makes channels due again after a time. */
async function postpone(
  { store, channels, runtime }: SessionRail,
  postponed: readonly SessionChannel[],
  ms: number,
): Promise<void> {
  const look_at = wholeMs(runtime.wallMs() + ms);
  await store.transaction(async (tx) => {
    for (const { id } of postponed) await channels.write(tx, id, { look_at });
  });
}

/**
 * Runs a bounded number at one time, so that channels whose transactions hang delay few others.
 * Throws after all have ended.
 */
async function sideBySide<T>(
  list: readonly T[],
  run: (item: T, at: number) => Promise<void>,
): Promise<void> {
  const left = list.entries();
  const lane = async (): Promise<void> => {
    for (const [at, item] of left) await run(item, at);
  };
  const ends = await Promise.allSettled(Array.from({ length: SIDE_BY_SIDE }, lane));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

interface Taken extends Seen {
  /** Until when no other process takes the channel. */
  readonly takenUntil: bigint;
}

/** Checks one channel; a failure postpones that channel only. */
async function lookAt(rail: SessionRail, channel: SessionChannel, seen: Taken): Promise<void> {
  const { store, channels, runtime } = rail;
  const vain = Number(channel.looks);
  let afterMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(vain, 10));
  let looks = vain + 1;
  try {
    const waitMs = await lookAfter(rail, channel, seen);
    if (waitMs !== null) {
      afterMs = waitMs;
      looks = 0;
    }
  } catch (error) {
    if (!(error instanceof ChainFailure))
      rail.log.error(
        { channel: channel.id, problem: errorText(error) },
        "bug: a channel could not be looked after",
      );
  }
  if (looks === MAX_VAIN + 1)
    rail.log.warn(
      { channel: channel.id, looks },
      "a channel was looked at several times in vain: its chain does not do what is next for it",
    );
  const next = wholeMs(runtime.wallMs() + afterMs);
  await store.transaction(async (tx) => {
    const now = await channels.lock(tx, channel.id);
    if (now === null) return;
    // A call may have made the channel due meanwhile.
    const look_at = now.look_at === seen.takenUntil ? next : lesserOf(now.look_at, next);
    await channels.write(tx, channel.id, { looks: BigInt(looks), look_at });
  });
}

/**
 * Takes the next step with a channel. Returns when to check it again; null = soon, since a
 * transaction is pending.
 */
async function lookAfter(
  rail: SessionRail,
  channel: SessionChannel,
  seen: Seen,
): Promise<number | null> {
  const { store, transactions } = rail;
  for (const transaction of await transactions.open(store.db, channel.id))
    await confirm(rail, transaction);
  const now = await syncWithChain(rail, channel.id, seen);
  if (now === null || now.state === "closed" || now.state === "failed") return IDLE_MS;
  const open = await transactions.open(store.db, channel.id);
  if (now.state === "opening") return null;
  if (now.state === "closing" || now.close_requested_at !== null) {
    // Calls in flight are still charged: there is time.
    if (now.state === "open" && (await hasCalls(rail, channel))) return null;
    const isClosing = open.some(({ kind }) => kind === "close");
    const close = isClosing ? null : await beginClose(rail, channel.id);
    if (close !== null) await confirm(rail, close);
    return null;
  }
  if (isDue(rail, now)) {
    const isSettling = open.some(({ kind }) => kind === "settle");
    const settle = isSettling ? null : await beginSettle(rail, now);
    if (settle !== null) await confirm(rail, settle);
    return null;
  }
  return open.length > 0 ? null : nextLookMs(rail, now);
}

/**
 * Whether calls of a channel are under way. Those of other processes are waited for a few times
 * only: such a process may stand still, and the payer gets the deposit in the end.
 */
async function hasCalls(rail: SessionRail, { id, looks }: SessionChannel): Promise<boolean> {
  if ((rail.live.peek(id)?.underWay.size ?? 0) > 0) return true;
  return looks < MAX_VAIN && !(await isIdle(rail, id));
}

function isDue({ policy, runtime }: SessionRail, channel: SessionChannel): boolean {
  if (channel.owed_since === null || collectable(channel) === null) return false;
  return (
    channel.spent_units - channel.settled_units >= policy.settleUnits ||
    runtime.wallMs() - Number(channel.owed_since) >= policy.settleMs
  );
}

function nextLookMs({ policy, runtime }: SessionRail, { owed_since }: SessionChannel): number {
  if (owed_since === null) return IDLE_MS;
  const leftMs = Number(owed_since) + policy.settleMs - runtime.wallMs();
  // The time to settle has come, but the payer's vouchers promise far more than was spent, so that
  // no exact amount can be settled: the channel is only watched.
  return leftMs <= 0 ? policy.watchMs : Math.max(FIRST_RETRY_MS, Math.min(policy.watchMs, leftMs));
}

/**
 * A development chain was started anew: channels of the former one are gone, and were worth
 * nothing.
 */
async function endOtherNetwork(rail: SessionRail, { id }: SessionChannel): Promise<void> {
  const { channels, transactions, runtime, log, settings } = rail;
  if (!settings.local)
    return log.error(
      { channel: id },
      "a channel is on another chain than the one that is configured with its number: it is " +
        "left alone",
    );
  const reason = "its local chain was started anew";
  const atMs = runtime.wallMs();
  await changeChannel(rail, id, async (tx, channel) => {
    for (const { tx_hash } of await transactions.open(tx, id))
      await transactions.end(tx, tx_hash, { state: "failed", reason }, atMs);
    const state = channel.state === "opening" ? "failed" : "closed";
    return channels.change(tx, channel, { state, reason, ended_at: wholeMs(atMs) });
  });
}
