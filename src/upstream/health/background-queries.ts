// What a provider is asked from time to time after a good probe: which blocks it calls finalized
// and safe, whether it reads state by the hash of a block, and how far back it has what calls read.
// A refusal is no failure of the
// provider. Sends no probes.

import type { Channel } from "../../core/provider/attempt.ts";
import { NEVER_MS } from "../../core/provider/health.ts";
import { readReport, type StatedHistory } from "../../core/provider/history.ts";
import { isAskedFor } from "../../core/provider/method-scope.ts";
import type { Consistency, Provider, Transport } from "../../core/provider/profile.ts";
import { DECISIONS, errorGroupOf, isMissingBlock } from "../../core/provider-errors/category.ts";
import { type Failure, isAnswer, plainFailure } from "../../core/rpc/failure.ts";
import { readHead } from "../../core/stream/chain-event.ts";
import type { Runtime } from "../../runtime.ts";
import { rpcCall, verdictOn } from "../rpc-call.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { Sockets, Upstream } from "../transport.ts";
import type { FactListener } from "./health-messages.ts";
import type { NamedTag } from "./provider-records.ts";
import type { Tracker } from "./tracker.ts";

/** What the health of providers is watched with. */
export interface HealthParts extends ProbeCallParts {
  /** Absent = heads are not heard. */
  readonly sockets?: Sockets;
  /** True = providers are also asked for their finalized block, and for their history. */
  readonly finality?: boolean;
  /** Which view callers get of sets that say nothing of it; absent = `off`. */
  readonly consistency?: (() => Consistency) | undefined;
  /** Hears what was found out; absent = nobody does. */
  readonly tell?: FactListener;
}

const TIMEOUT_MS = 5_000;
/** How often a provider is asked for a named block, at most; and the same after a refusal. */
const EVERY_MS = 30_000;
const REFUSED_MS = 600_000;
/** How often a provider is asked how far back it has what calls read; and after it refused. */
export const REPORT_EVERY_MS = 600_000;
const REPORT_REFUSED_MS = 21_600_000;
/** Between two tries to read state by hash, of which the first brought nothing. */
const HASH_READS_AGAIN_MS = 1_000;
/** The longest block without its transactions that is read. */
const MAX_BLOCK_BYTES = 262_144;
const NAMED = "eth_getBlockByNumber";
const BALANCE = "eth_getBalance";
const ANYBODY = "0x0000000000000000000000000000000000000000";

/** The queries to one provider on one transport. */
export class BackgroundQueries {
  readonly #parts: HealthParts;
  readonly #tracker: Tracker;
  readonly target: Channel;
  /** When the block of a tag may be asked for again. */
  readonly #againAtMs: Record<NamedTag, number> = { safe: NEVER_MS, finalized: NEVER_MS };
  /** Ids of providers that are being asked for state by hash or history, on either transport. */
  readonly #asking: Set<string>;
  #hashReadsAtMs = Number.NEGATIVE_INFINITY;
  readonly #stopListening: () => void;
  readonly #cancels = new Map<NamedTag | "hash reads" | "history", () => void>();

  constructor(parts: HealthParts, tracker: Tracker, target: Channel, asking: Set<string>) {
    this.#parts = parts;
    this.#tracker = tracker;
    this.target = target;
    this.#asking = asking;
    // A provider that was behind when it was asked, or was asked before there was a tip, is asked
    // with a later tip.
    this.#stopListening = tracker.blocks.view.attend(() => {
      if (this.#hasView()) this.#askByHash();
    });
  }

  /** Sends what is due. */
  run(): void {
    if (this.#parts.finality === true) {
      this.#askFor("finalized");
      this.#askForHistory();
    }
    if (!this.#hasView()) return;
    this.#askFor("safe");
    this.#askByHash();
  }

  /** Whether callers of the set get a view of the chain. */
  #hasView(): boolean {
    const { consistency } = this.#parts;
    return (this.#tracker.set.consistency ?? consistency?.() ?? "off") !== "off";
  }

  stop(): void {
    this.#stopListening();
    for (const cancel of this.#cancels.values()) cancel();
    this.#cancels.clear();
    this.#asking.delete(this.target.provider.id);
    this.#asking.delete(historyOf(this.target));
  }

  /** Asks for the block that a tag names, unless it was reported lately, on either transport. */
  #askFor(tag: NamedTag): void {
    const { runtime, tell } = this.#parts;
    const { provider } = this.target;
    const nowMs = runtime.now();
    const namedAtMs = this.#tracker.stateOf(provider)?.[tag]?.atMs ?? NEVER_MS;
    const isDue = nowMs - namedAtMs >= EVERY_MS;
    if (nowMs < this.#againAtMs[tag] || !isDue || !isAskedFor(this.target.provider, NAMED, true))
      return;
    this.#againAtMs[tag] = nowMs + EVERY_MS;
    const cancel = callNumber(this.#parts, this.target, namedCall(tag), (height) => {
      if (typeof height !== "number") {
        this.#againAtMs[tag] = nowMs + REFUSED_MS;
        return;
      }
      this.#tracker.recordNamed(provider, tag, height);
      tell?.(this.#tracker, provider, { kind: "named", tag, height });
    });
    this.#cancels.set(tag, cancel);
  }

  /** Asks how far back it has what calls read. */
  #askForHistory(): void {
    const { provider } = this.target;
    const { runtime, tell } = this.#parts;
    const asking = historyOf(this.target);
    const dueAtMs = this.#tracker.stateOf(provider)?.reportDueAtMs ?? NEVER_MS;
    if (runtime.now() < dueAtMs || this.#asking.has(asking) || !mayBeAsked(provider)) return;
    this.#asking.add(asking);
    let reported: StatedHistory | null = null;
    const read = (result: Buffer): number | null => {
      reported = readReport(result);
      return reported === null ? null : 1;
    };
    const cancel = callNumber(this.#parts, this.target, { ...CAPABILITIES, read }, (result) => {
      this.#asking.delete(asking);
      const isRefused = typeof result !== "number" && isLasting(result);
      const dueInMs = isRefused ? REPORT_REFUSED_MS : REPORT_EVERY_MS;
      this.#tracker.recordHistory(provider, reported, dueInMs);
      if (reported !== null) tell?.(this.#tracker, provider, { kind: "history", reported });
    });
    this.#cancels.set("history", cancel);
  }

  /** Asks for state at the tip, by its hash, of a provider that has it. */
  #askByHash(): void {
    const { provider } = this.target;
    const { blocks } = this.#tracker;
    const nowMs = this.#parts.runtime.now();
    const { takesHash = false, hashReadsAtMs = NEVER_MS } = this.#tracker.stateOf(provider) ?? {};
    const isKnown = takesHash || nowMs - hashReadsAtMs < REFUSED_MS;
    if (!isAskedFor(provider, BALANCE, true)) return;
    const view = blocks.view.current();
    const hash = view?.hash ?? null;
    if (isKnown || nowMs < this.#hashReadsAtMs || this.#asking.has(provider.id)) return;
    if (view === null || hash === null || blocks.lacks(provider, view)) return;
    this.#hashReadsAtMs = nowMs + HASH_READS_AGAIN_MS;
    this.#asking.add(provider.id);
    const cancel = callNumber(this.#parts, this.target, balanceAt(hash), (result) => {
      this.#asking.delete(provider.id);
      const served = typeof result === "number";
      if (!served && !isRefusal(result)) return;
      this.#tracker.recordHashReads(provider, served);
      this.#parts.tell?.(this.#tracker, provider, { kind: "hash_reads", served });
    });
    this.#cancels.set("hash reads", cancel);
  }
}

const CAPABILITIES = { method: "eth_capabilities", params: "[]", timeoutMs: TIMEOUT_MS } as const;

function historyOf({ provider }: Channel): string {
  return `history ${provider.id}`;
}

/** Whether the provider will answer so again: it was reached, and had no need to limit calls. */
function isLasting({ category, failure }: FailedProbeCall): boolean {
  return isAnswer(failure.kind) && errorGroupOf(category) !== "rate_limit";
}

function mayBeAsked(provider: Provider): boolean {
  const { unsupportedMethods, unsupportedCategories } = provider;
  const lacks = unsupportedMethods.has(CAPABILITIES.method) || unsupportedCategories.has("core");
  return !lacks && isAskedFor(provider, CAPABILITIES.method, true);
}

/** Whether the provider refused the form of the call: it was well, and did not lack the block. */
function isRefusal({ category, failure }: FailedProbeCall): boolean {
  const effect = DECISIONS.get(category)?.[2] ?? null;
  const isWell =
    effect !== null && typeof effect === "object" && ["ignored", "learn"].includes(effect.kind);
  return failure.kind === "error" && isWell && !isMissingBlock(category);
}

function namedCall(tag: NamedTag): NumberCall {
  return {
    method: NAMED,
    params: `["${tag}",false]`,
    timeoutMs: TIMEOUT_MS,
    read: (result) => (result.length > MAX_BLOCK_BYTES ? null : (readHead(result)?.number ?? null)),
  };
}

function balanceAt(blockHash: string): NumberCall {
  return {
    method: BALANCE,
    params: JSON.stringify([ANYBODY, { blockHash }]),
    timeoutMs: TIMEOUT_MS,
    read: (result) => (/^"0x[0-9a-fA-F]{1,64}"$/.test(result.toString("latin1", 0, 70)) ? 1 : null),
  };
}

// One call of a probe whose result says a number. Records nothing.

/** Dependencies of such calls. */
export interface ProbeCallParts {
  readonly runtime: Runtime;
  readonly timerWheel: TimerWheel;
  readonly upstreams: Readonly<Partial<Record<Transport, Pick<Upstream, "send">>>>;
}

/** A call whose result says a number. */
export interface NumberCall {
  readonly method: string;
  readonly params: string;
  readonly timeoutMs: number;
  /** The number in a result; null = there is none. */
  readonly read: (result: Buffer) => number | null;
}

/** Why there is no number. */
export interface FailedProbeCall {
  readonly kind: "failed";
  /** The category of the provider's error. */
  readonly category: string;
  readonly failure: Failure;
}

/** Sends the call; `done` is called once. Returns the function that cancels. */
export function callNumber(
  parts: ProbeCallParts,
  { provider, transport }: Channel,
  { method, params, timeoutMs, read }: NumberCall,
  done: (result: number | FailedProbeCall) => void,
): () => void {
  const upstream = parts.upstreams[transport];
  if (upstream === undefined) return () => {};
  const failed = (failure: Failure): void => {
    const { category } = verdictOn(failure, { provider, method }, parts.runtime);
    done({ kind: "failed", category, failure });
  };
  return rpcCall(
    parts.timerWheel,
    { upstream, provider, method, params, timeoutMs, isProbe: true },
    {
      result(result) {
        const number = read(result);
        if (number === null) failed(plainFailure("body", "not a number"));
        else done(number);
      },
      failed,
    },
  );
}
