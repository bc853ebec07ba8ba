// The view of the chain at which one request, or all items of one batch, are answered: by what the
// caller, its key, its profile and the service ask for. Waits for nothing.

import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import { setNewest } from "../../core/newest.ts";
import type { Consistency } from "../../core/provider/profile.ts";
import type { View } from "../../core/rpc/call.ts";
import { minedIn } from "../../core/rpc/result-block.ts";
import { type SeenBlock, seenText } from "../../core/rpc/seen.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import type { Reply } from "./answers/reply.ts";
import type { Wishes } from "./directives.ts";
import type { Target } from "./target.ts";

/** How a call is routed at the view of its caller. */
export interface RoutedView {
  /** As of `RouteRequest`. */
  readonly view: View | null | undefined;
  /** The block that the answer must not undercut; null = none. */
  readonly mark: SeenBlock | null;
  readonly mayRoam: boolean;
}

/** What the view of a request is chosen from. */
export interface CallerViewParts {
  /** What the request or the handshake says. */
  readonly wishes: Wishes;
  /** The key, which may say what its calls want; null = there is none. */
  readonly key: { readonly consistency: Consistency | null } | null;
  /** What the service says where a profile does not. */
  readonly usual: () => Consistency;
  /** Where the caller's marks are kept, unless it brings its own. */
  readonly marks: () => SeenBlocks;
}

/** A mark may be so many blocks above the tip: another node may know of them already. */
const MOST_AHEAD = 5;
const NO_VIEW: RoutedView = { view: undefined, mark: null, mayRoam: false };

/** The view of one request or batch. */
export class CallerView {
  readonly #parts: CallerViewParts;
  #marks: SeenBlocks | null = null;
  /** What was chosen for the first item of a batch. */
  #chosen: { readonly tracker: Tracker; readonly routed: RoutedView } | null = null;
  /** What was wanted of the last target. */
  #known: { readonly tracker: Tracker; readonly mode: Consistency } | null = null;
  readonly #isBatch: boolean;

  constructor(parts: CallerViewParts, isBatch = false) {
    this.#parts = parts;
    this.#isBatch = isBatch;
  }

  /** The view of one batch: all of its items are answered at the same block. */
  forBatch(): CallerView {
    const marks = this.#marks;
    return new CallerView(
      marks === null ? this.#parts : { ...this.#parts, marks: () => marks },
      true,
    );
  }

  /** The view of a call to this target; a refusal where its mark cannot be right. */
  at({ tracker, pin }: Pick<Target, "tracker" | "pin">): RoutedView | Fault {
    if (this.#chosen?.tracker === tracker) return this.#chosen.routed;
    const mode = this.#mode(tracker);
    if (mode === "off" || pin !== null) return NO_VIEW;
    const routed = mode === "tip" ? tipView(tracker) : this.#marked(tracker);
    if (this.#isBatch && !("kind" in routed)) this.#chosen = { tracker, routed };
    return routed;
  }

  /** Notes what the caller was told; true = it is told its mark. */
  answered({ route, outcome, target }: Reply): void {
    const { tracker } = target;
    const known = this.#known;
    const mode = known?.tracker === tracker ? known.mode : this.#mode(tracker);
    if (route === null || mode !== "caller") return;
    if (route.at !== null) return this.#marksOf(tracker).see(tracker, route.at);
    if (outcome.kind !== "result") return;
    const { methodName } = route.request.call;
    if (methodName === "eth_blockNumber") {
      const number = Number(outcome.body.toString("latin1", outcome.start + 1, outcome.end - 1));
      if (Number.isSafeInteger(number)) this.#marksOf(tracker).see(tracker, { number, hash: null });
    } else if (methodName === "eth_getTransactionReceipt") {
      const mined = minedIn(outcome.body, outcome);
      if (mined !== null) this.#marksOf(tracker).see(tracker, mined);
    }
  }

  /** The mark that the caller is told, as text; null = it keeps none. */
  seen({ tracker }: Pick<Target, "tracker">): string | null {
    const known = this.#known;
    const mode = known?.tracker === tracker ? known.mode : this.#mode(tracker);
    if (mode !== "caller") return null;
    const mark = this.#marksOf(tracker).of(tracker);
    return mark === null ? null : seenText(mark);
  }

  /** A caller that brings a mark wants it kept. */
  #mode(tracker: Tracker): Consistency {
    const { wishes, key, usual } = this.#parts;
    const mode = wishes.consistency ?? key?.consistency ?? tracker.set.consistency ?? usual();
    const wanted = mode === "tip" && wishes.seen !== null ? "caller" : mode;
    this.#known = { tracker, mode: wanted };
    return wanted;
  }

  #marksOf(tracker: Tracker): SeenBlocks {
    if (this.#marks !== null) return this.#marks;
    const { seen } = this.#parts.wishes;
    this.#marks = seen === null ? this.#parts.marks() : new SeenBlocks();
    if (seen !== null && !isAbandoned(tracker, seen)) this.#marks.see(tracker, seen);
    return this.#marks;
  }

  #marked(tracker: Tracker): RoutedView | Fault {
    const { view: served } = tracker.blocks;
    const view = served.current();
    const { tip } = served;
    const { seen } = this.#parts.wishes;
    if (tip !== null && seen !== null && seen.number > tip.number + MOST_AHEAD) return TOO_FAR;
    const mark = this.#marksOf(tracker).of(tracker);
    if (mark === null) return { view, mark, mayRoam: true };
    const isAhead = tip === null || mark.number > tip.number;
    if (view !== null && !isAhead) return { view, mark, mayRoam: true };
    const { number, hash } = isAhead ? mark : tip;
    return {
      view: { safe: null, finalized: null, isAlone: false, ...view, number, hash },
      mark,
      mayRoam: true,
    };
  }
}

function tipView({ blocks }: Tracker): RoutedView {
  return { view: blocks.view.current(), mark: null, mayRoam: false };
}

const TOO_FAR: Fault = fault(
  "invalid_request",
  "the mark of the last seen block is above every block of this chain",
  { nextAction: "send X-Svc-Seen back as it was received for this chain, or leave it out" },
);

type MarkedChain = Pick<Tracker, "profileId" | "set" | "blocks">;

/** Most chains of one caller that are remembered. */
const MAX_CHAINS = 64;
/** Most keys that are remembered. */
const MAX_KEYS = 10_000;

/** The newest blocks that one caller has seen. */
export class SeenBlocks {
  readonly #blocks = new Map<string, SeenBlock>();

  /** The newest block of a chain that the caller has seen and that is still in it; null = none. */
  of(chain: MarkedChain): SeenBlock | null {
    const key = keyOf(chain);
    const mark = this.#blocks.get(key);
    if (mark === undefined) return null;
    if (!isAbandoned(chain, mark)) return mark;
    this.#blocks.delete(key);
    return null;
  }

  /** The caller has seen a block. */
  see(chain: MarkedChain, block: SeenBlock): void {
    const known = this.of(chain);
    if (known !== null && known.number >= block.number) return;
    setNewest(this.#blocks, keyOf(chain), block, MAX_CHAINS);
  }
}

/** Whether an agreed reorganisation has left a block. */
function isAbandoned({ blocks }: MarkedChain, { number, hash }: SeenBlock): boolean {
  const served = blocks.view.hashAt(number);
  return served !== null && hash !== null && served !== hash;
}

/** The marks of the callers of one process. */
export class SeenByCallers {
  readonly #keys = new Map<string, SeenBlocks>();
  readonly #connections = new WeakMap<object, SeenBlocks>();

  ofKey(keyId: string): SeenBlocks {
    const marks = this.#keys.get(keyId) ?? new SeenBlocks();
    setNewest(this.#keys, keyId, marks, MAX_KEYS);
    return marks;
  }

  /** Of a caller without a key: by its connection. */
  ofConnection(connection: object): SeenBlocks {
    const known = this.#connections.get(connection);
    if (known !== undefined) return known;
    const marks = new SeenBlocks();
    this.#connections.set(connection, marks);
    return marks;
  }
}

function keyOf({ profileId, set }: MarkedChain): string {
  return `${profileId} ${set.chain.chainName}`;
}
