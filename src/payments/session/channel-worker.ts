// The worker of channels: checks every channel that has not ended, whichever process opened it.
// Settles what is owed, closes channels whose payers want the deposit back, and finishes what a
// crash has interrupted. A failure of one channel stops no other.

import { errorText } from "../../core/fields.ts";
import { pause } from "../../runtime.ts";
import { ChainFailure } from "../rails/chain.ts";
import { forgetCalls } from "./call-record.ts";
import type { EscrowBlock, EscrowState } from "./chain/escrow.ts";
import type { WrittenTransaction } from "./chain/transaction-record.ts";
import { syncWithChain } from "./chain-sync.ts";
import { collectable } from "./channel.ts";
import type { SessionChannel } from "./channel-record.ts";
import { confirm } from "./confirmation.ts";
import { channelIdOf } from "./descriptor.ts";
import { forgetHolds } from "./holds.ts";
import type { SessionRail } from "./session-rail.ts";
import { beginClose, beginSettle, isIdle } from "./settlement.ts";
import { isOurs } from "./terms.ts";

const TICK_MS = 1_000;
const AT_ONCE = 32;
const PASSES_A_TICK = 4;
const SIDE_BY_SIDE = 8;
/** A channel taken by an instance that then ended is due again after this time. */
const TAKEN_MS = 60_000;
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
  readonly #parts: SessionRail;
  readonly #state: State;
  #cancel: () => void;
  #running: Promise<void> = Promise.resolve();

  constructor(parts: SessionRail) {
    const nowMs = parts.runtime.now();
    this.#parts = parts;
    this.#state = {
      closed: false,
      chainDown: false,
      walletLow: false,
      graceKnown: false,
      foreign: new Set(),
      forgetMs: nowMs,
      walletMs: nowMs,
    };
    this.#cancel = parts.runtime.after(0, () => this.#next());
  }

  get chainDown(): boolean {
    return this.#state.chainDown;
  }

  get walletLow(): boolean {
    return this.#state.walletLow;
  }

  /** Stops; resolves when no check is in flight. */
  async close(): Promise<void> {
    this.#state.closed = true;
    this.#cancel();
    await this.#running;
  }

  #next(): void {
    const { runtime, log } = this.#parts;
    this.#running = tick(this.#parts, this.#state)
      .catch((error: unknown) =>
        log.warn(
          { problem: errorText(error) },
          "channels of pay-per-call cannot be looked after right now",
        ),
      )
      .finally(() => {
        if (!this.#state.closed) this.#cancel = runtime.after(TICK_MS, () => this.#next());
      });
  }
}

interface State {
  closed: boolean;
  chainDown: boolean;
  walletLow: boolean;
  graceKnown: boolean;
  /** Ids of channels of an earlier configuration that were logged. */
  readonly foreign: Set<string>;
  forgetMs: number;
  walletMs: number;
}

async function tick(parts: SessionRail, state: State): Promise<void> {
  const { runtime, store, transactions, terms, writer } = parts;
  for (let pass = 0; pass < PASSES_A_TICK && !state.closed; pass++)
    if ((await processDue(parts, state)) < AT_ONCE) break;
  await writer.releaseAgain();
  if (runtime.now() >= state.forgetMs) {
    state.forgetMs = runtime.now() + FORGET_MS;
    while (!state.closed && (await forgetCalls(store, runtime.wallMs() - KEPT_MS)))
      await pause(runtime, 0);
    while (!state.closed && (await forgetHolds(store))) await pause(runtime, 0);
  }
  if (runtime.now() >= state.walletMs) {
    state.walletMs = runtime.now() + WALLET_MS;
    await lookAround(parts, state).catch(ignoreChainFailure);
  }
  for (const transaction of await transactions.leftOver(store.db, terms.chainId))
    await confirm(parts, transaction, false).catch(ignoreChainFailure);
}

/** Checks the channels that are due, a bounded number; returns how many there were. */
async function processDue(parts: SessionRail, state: State): Promise<number> {
  const { runtime, store, channels, terms, escrow } = parts;
  const nowMs = runtime.wallMs();
  const taken = await store.transaction((tx) =>
    channels.takeDue(tx, {
      chainId: terms.chainId,
      nowMs,
      untilMs: nowMs + TAKEN_MS,
      count: AT_ONCE,
    }),
  );
  for (const id of taken.unreadable)
    parts.log.error(
      { channel: id },
      "a channel cannot be read: start svc with the secret that it was written with",
    );
  if (taken.channels.length === 0) return taken.unreadable.length;
  try {
    const due = await leaveForeign(parts, state.foreign, taken.channels);
    const network = due.length === 0 ? null : await escrow.network();
    if (network === null) return taken.channels.length;
    const head = await escrow.head();
    const states = await escrow.states(
      due.map((channel) => channel.id),
      head.number,
    );
    report(parts, state, false);
    await sideBySide(due, async (channel, at) => {
      const onChain = states[at];
      if (onChain === undefined || state.closed) return;
      if (channel.network === network)
        await lookAt(parts, channel, { onChain, head, takenMs: Math.floor(nowMs + TAKEN_MS) });
      else await endOtherNetwork(parts, channel);
    });
  } catch (error) {
    ignoreChainFailure(error);
    report(parts, state, true);
    await store.transaction(async (tx) => {
      for (const { id } of taken.channels)
        await channels.write(tx, id, { lookAtMs: runtime.wallMs() + LAST_RETRY_MS / 10 });
    });
  }
  return taken.channels.length;
}

/**
 * Postpones channels of an earlier configuration: to another payee, wallet, token or contract, for
 * which our wallet cannot sign. `logged` = ids that were logged before. Returns the others.
 */
async function leaveForeign(
  parts: SessionRail,
  logged: Set<string>,
  due: readonly SessionChannel[],
): Promise<readonly SessionChannel[]> {
  const { store, channels, terms, runtime, log } = parts;
  const isMine = ({ id, descriptor }: SessionChannel): boolean =>
    isOurs(terms, descriptor) && channelIdOf(descriptor, terms.escrow, terms.chainId) === id;
  const foreign = due.filter((channel) => !isMine(channel));
  if (foreign.length === 0) return due;
  for (const { id } of foreign) {
    if (logged.has(id) || logged.size >= MAX_LOGGED) continue;
    logged.add(id);
    log.error(
      { channel: id },
      "a channel is to another recipient, wallet, token or contract than is configured: it is " +
        "left alone. Configure those again to settle it",
    );
  }
  await store.transaction(async (tx) => {
    for (const { id } of foreign)
      await channels.write(tx, id, { lookAtMs: runtime.wallMs() + PUT_OFF_MS });
  });
  return due.filter((channel) => !foreign.includes(channel));
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

interface Seen {
  readonly onChain: EscrowState;
  readonly head: EscrowBlock;
  /** Until when no other process takes the channel. */
  readonly takenMs: number;
}

/** Checks one channel; a failure postpones that channel only. */
async function lookAt(parts: SessionRail, channel: SessionChannel, seen: Seen): Promise<void> {
  const { store, channels, runtime } = parts;
  let afterMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(channel.looks, 10));
  let looks = channel.looks + 1;
  try {
    const waitMs = await lookAfter(parts, channel, seen);
    if (waitMs !== null) {
      afterMs = waitMs;
      looks = 0;
    }
  } catch (error) {
    if (!(error instanceof ChainFailure))
      parts.log.error(
        { channel: channel.id, problem: errorText(error) },
        "bug: a channel could not be looked after",
      );
  }
  if (looks === MAX_VAIN + 1)
    parts.log.warn(
      { channel: channel.id, looks },
      "a channel was looked at several times in vain: its chain does not do what is next for it",
    );
  const atMs = runtime.wallMs();
  await store.transaction(async (tx) => {
    const now = await channels.lock(tx, channel.id);
    if (now === null) return;
    // A call may have made the channel due meanwhile.
    const soonestMs = now.lookAtMs === seen.takenMs ? Number.POSITIVE_INFINITY : now.lookAtMs;
    await channels.write(tx, channel.id, { looks, lookAtMs: Math.min(soonestMs, atMs + afterMs) });
  });
}

/**
 * Takes the next step with a channel. Returns when to check it again; null = soon, since a
 * transaction is pending.
 */
async function lookAfter(
  parts: SessionRail,
  channel: SessionChannel,
  seen: Seen,
): Promise<number | null> {
  const { store, transactions } = parts;
  for (const transaction of await transactions.open(store.db, channel.id))
    await confirm(parts, transaction);
  const now = await syncWithChain(parts, channel.id, seen);
  if (now === null || now.state === "closed" || now.state === "failed") return IDLE_MS;
  const open = await transactions.open(store.db, channel.id);
  if (now.state === "opening") return null;
  if (now.state === "closing" || now.closeRequestedAtMs !== null) {
    // Calls in flight are still charged: there is time.
    if (now.state === "open" && (await hasCalls(parts, channel))) return null;
    if (!open.some((transaction) => transaction.kind === "close"))
      await send(parts, await beginClose(parts, channel.id));
    return null;
  }
  if (isDue(parts, now)) {
    if (!open.some((transaction) => transaction.kind === "settle"))
      await send(parts, await beginSettle(parts, now));
    return null;
  }
  return open.length > 0 ? null : nextLookMs(parts, now);
}

/**
 * Whether calls of a channel are under way. Those of other processes are waited for a few times
 * only: such a process may stand still, and the payer gets the deposit in the end.
 */
async function hasCalls(parts: SessionRail, { id, looks }: SessionChannel): Promise<boolean> {
  if ((parts.live.peek(id)?.underWay.size ?? 0) > 0) return true;
  return looks < MAX_VAIN && !(await isIdle(parts, id));
}

function isDue({ policy, runtime }: SessionRail, channel: SessionChannel): boolean {
  if (channel.owedSinceMs === null || collectable(channel) === null) return false;
  return (
    channel.spent - channel.settled >= policy.settleUnits ||
    runtime.wallMs() - channel.owedSinceMs >= policy.settleMs
  );
}

function nextLookMs({ policy, runtime }: SessionRail, { owedSinceMs }: SessionChannel): number {
  if (owedSinceMs === null) return IDLE_MS;
  const leftMs = owedSinceMs + policy.settleMs - runtime.wallMs();
  // The time to settle has come, but the payer's vouchers promise far more than was spent, so that
  // no exact amount can be settled: the channel is only watched.
  return leftMs <= 0 ? policy.watchMs : Math.max(FIRST_RETRY_MS, Math.min(policy.watchMs, leftMs));
}

async function send(parts: SessionRail, transaction: WrittenTransaction | null): Promise<void> {
  if (transaction !== null) await confirm(parts, transaction);
}

/**
 * A development chain was started anew: channels of the former one are gone, and were worth
 * nothing.
 */
async function endOtherNetwork(parts: SessionRail, { id }: SessionChannel): Promise<void> {
  const { store, channels, transactions, runtime, live, log, settings } = parts;
  if (!settings.local)
    return log.error(
      { channel: id },
      "a channel is on another chain than the one that is configured with its number: it is " +
        "left alone",
    );
  const reason = "its local chain was started anew";
  const ended = await store.transaction(async (tx) => {
    const channel = await channels.lock(tx, id);
    if (channel === null) return null;
    const atMs = runtime.wallMs();
    const change = {
      state: channel.state === "opening" ? ("failed" as const) : ("closed" as const),
      reason,
      endedAtMs: atMs,
    };
    for (const { hash } of await transactions.open(tx, id))
      await transactions.end(tx, hash, { kind: "failed", reason }, atMs);
    await channels.write(tx, id, change);
    return { ...channel, ...change };
  });
  if (ended !== null) live.note(ended);
}

/**
 * Checks that concern no single channel: whether the contract's grace period is long enough, and
 * whether the wallet can pay for its transactions.
 */
async function lookAround({ escrow, settler, log }: SessionRail, state: State): Promise<void> {
  if (!state.graceKnown) {
    const graceMs = await escrow.graceMs();
    state.graceKnown = true;
    if (graceMs < SHORTEST_GRACE_MS)
      log.error(
        { grace_ms: graceMs },
        "the contract of pay-per-call gives deposits back too soon: calls may go unpaid",
      );
  }
  const low = (await escrow.balance(settler.address)) < LOW_UNITS;
  if (low && !state.walletLow)
    log.error(
      { wallet: settler.address },
      "the wallet that settles pay-per-call holds too little to pay for its transactions",
    );
  if (!low && state.walletLow)
    log.info(
      { wallet: settler.address },
      "the wallet that settles pay-per-call can pay for its transactions again",
    );
  state.walletLow = low;
}

function report({ log, terms }: SessionRail, state: State, down: boolean): void {
  if (down && !state.chainDown)
    log.error(
      { chain_id: terms.chainId },
      "the chain of pay-per-call cannot be asked: nothing is settled until it can",
    );
  if (!down && state.chainDown)
    log.info({ chain_id: terms.chainId }, "the chain of pay-per-call answers again");
  state.chainDown = down;
}

function ignoreChainFailure(error: unknown): void {
  if (!(error instanceof ChainFailure)) throw error;
}
