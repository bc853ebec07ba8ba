// Providers over WebSocket without a network: simulated nodes that follow one simulated chain, each
// with its own delays, manners and failures. Time is the simulated world's. Knows nothing of what
// is tested with it.

import type { Provider } from "../../src/core/provider/profile.ts";
import type { Failure } from "../../src/core/rpc/failure.ts";
import type {
  AnswerListener,
  Dispatch,
  Sockets,
  SubscriptionListener,
} from "../../src/upstream/transport.ts";
import {
  type Blooms,
  blockText,
  type ChainBlock,
  type ChainFilter,
  type ChainLog,
  type FakeChain,
  headerText,
  logText,
  wanted,
} from "./chain.ts";
import type { SimulatedWorld } from "./runtime.ts";

/** How a node behaves; a test changes it while it runs. */
export interface Manners {
  /** Until an answer and an acknowledgement. */
  latencyMs: number;
  ackMs: number;
  /**
   * From following a block to pushing it, and from pushing a head to pushing its logs (negative =
   * logs come first).
   */
  pushMs: number;
  logsAfterMs: number;
  /** How long it cannot show a block that it has announced. */
  showMs: number;
  /** The socket is open and nothing is pushed. */
  stale: boolean;
  /** Answers nothing. */
  mute: boolean;
  /** Methods that it never answers. */
  deafTo: ReadonlySet<string>;
  /** Pushes `removed: true`. */
  saysRemoved: boolean;
  /** Chances that a head is left out, and that an event is sent again. */
  skip: number;
  repeat: number;
  /** Chances that a log is not pushed, and that the logs of a block are pushed in disorder. */
  omit: number;
  disorder: number;
  /** Answers no logs by the hash of a block. */
  hidesLogs: boolean;
  /** Refuses to answer all logs of a block: they are too many. */
  limitsLogs: boolean;
  /** Answers that it does not know a block, by an error, for so long after it has followed it. */
  unknownMs: number;
  blooms: Blooms;
  /** Names of subscriptions it refuses. */
  refuses: ReadonlySet<string>;
}

/** A simulated node. */
export interface FakeNode {
  readonly provider: Provider;
  readonly manners: Manners;
  readonly up: boolean;
  /** The newest block it knows of. */
  readonly tip: ChainBlock;
  /** The newest block it has pushed. */
  readonly pushed: ChainBlock;
  /** Learns of a branch, and pushes what is new. */
  follow(tip: ChainBlock): void;
  /** Drops its connection and refuses new ones. */
  die(): void;
  revive(): void;
  /** Pushes a text to every subscription of that name. */
  push(name: string, text: string): void;
  /** Pushes a log to the subscriptions that want it. */
  pushLog(block: ChainBlock, log: ChainLog, removed: boolean): void;
  /** Parameters of the subscriptions that are open, and of every one that was ever asked for. */
  open(): readonly string[];
  readonly asked: readonly string[];
  /** Methods of requests, in order, and how many wait for an answer. */
  readonly requests: readonly string[];
  pending(): number;
}

/** Sockets to simulated nodes, with the nodes. */
export interface FakeSockets extends Sockets {
  node(provider: Provider): FakeNode;
}

/** A node that does everything right, and fast. */
const WELL: Manners = {
  latencyMs: 20,
  ackMs: 20,
  pushMs: 10,
  logsAfterMs: 5,
  showMs: 0,
  stale: false,
  mute: false,
  deafTo: new Set(),
  saysRemoved: true,
  skip: 0,
  repeat: 0,
  omit: 0,
  disorder: 0,
  hidesLogs: false,
  limitsLogs: false,
  unknownMs: 0,
  blooms: "true",
  refuses: new Set(),
};

/** What a node says when it refuses a subscription. */
export const REFUSAL =
  '{"code":-32601,"message":"the method eth_subscribe does not exist/is not available"}';

const TOO_MANY = "query returned more than 10000 results";
const TOO_MANY_RAW = Buffer.from(`{"code":-32005,"message":"${TOO_MANY}"}`);
const UNKNOWN_BLOCK = '{"code":-32000,"message":"unknown block"}';

/** One simulated node for each provider. */
export function fakeSockets(
  runtime: SimulatedWorld,
  chain: FakeChain,
  providers: readonly Provider[],
): FakeSockets {
  const nodes = new Map(
    providers.map((provider) => [provider.id, new Node(runtime, chain, provider)]),
  );
  const nodeOf = ({ id }: Provider): Node => {
    const node = nodes.get(id);
    if (node === undefined) throw new Error(`there is no node ${id}`);
    return node;
  };
  return {
    node: nodeOf,
    send: ({ provider, body }, listener) =>
      nodeOf(provider).ask(JSON.parse(body.toString()), listener),
    subscribe: (provider, params, watcher) => nodeOf(provider).subscribe(params, watcher),
    keep: () => () => {},
    renew: (provider) => nodeOf(provider).drop(),
    report: (provider) => ({
      state: "open",
      subscriptions: nodeOf(provider).open().length,
      opened: 1,
      strayFrames: 0,
    }),
    retain() {},
    async close() {},
  };
}

interface Seat {
  readonly watcher: SubscriptionListener;
  started: boolean;
}

interface Feed {
  readonly params: string;
  readonly name: string;
  readonly filter: ChainFilter;
  readonly openSockets: Set<Seat>;
  /** Nothing is delivered earlier: the acknowledgement, then each event in its turn. */
  dueMs: number;
  acknowledged: boolean;
}

interface Request {
  readonly method: string;
  readonly params: readonly unknown[];
}

class Node implements FakeNode {
  readonly provider: Provider;
  readonly manners: Manners = { ...WELL };
  readonly asked: string[] = [];
  readonly requests: string[] = [];
  up = true;
  tip: ChainBlock;
  pushed: ChainBlock;
  readonly #runtime: SimulatedWorld;
  readonly #chain: FakeChain;
  readonly #feeds = new Map<string, Feed>();
  readonly #pending = new Set<AnswerListener>();
  /** Blocks it cannot show yet, and until when. */
  readonly #hidden = new Map<string, number>();
  readonly #followed = new Map<string, number>();

  constructor(runtime: SimulatedWorld, chain: FakeChain, provider: Provider) {
    this.#runtime = runtime;
    this.#chain = chain;
    this.provider = provider;
    this.tip = chain.tip();
    this.pushed = this.tip;
  }

  follow(tip: ChainBlock): void {
    const { left, come } = this.#chain.walk(this.tip, tip);
    const { pushMs, logsAfterMs, saysRemoved, showMs, skip, stale } = this.manners;
    this.tip = tip;
    if (!stale) this.pushed = tip;
    for (const block of come) {
      this.#hidden.set(block.hash, this.#runtime.now() + showMs);
      this.#followed.set(block.hash, this.#runtime.now());
    }
    const heads = come.filter(() => this.#runtime.random() >= skip);
    for (const feed of this.#feeds.values()) {
      if (feed.name === "newHeads")
        for (const block of heads)
          this.#deliver(
            feed,
            headerText(block, this.manners.blooms),
            pushMs + Math.max(0, -logsAfterMs),
          );
      if (feed.name !== "logs") continue;
      const afterMs = pushMs + Math.max(0, logsAfterMs);
      if (saysRemoved)
        for (const block of left)
          for (const log of wanted(block, feed.filter).toReversed())
            this.#deliver(feed, logText(block, log, true), afterMs);
      for (const block of come)
        for (const log of this.#pushedOf(block, feed.filter))
          this.#deliver(feed, logText(block, log), afterMs);
    }
  }

  #pushedOf(block: ChainBlock, filter: ChainFilter): readonly ChainLog[] {
    const { omit, disorder } = this.manners;
    const logs = wanted(block, filter).filter(() => omit === 0 || this.#runtime.random() >= omit);
    return disorder > 0 && this.#runtime.random() < disorder ? logs.toReversed() : logs;
  }

  die(): void {
    this.up = false;
    this.drop();
  }

  revive(): void {
    this.up = true;
  }

  push(name: string, text: string): void {
    for (const feed of this.#feeds.values())
      if (feed.name === name) this.#deliver(feed, text, this.manners.pushMs);
  }

  pushLog(block: ChainBlock, log: ChainLog, removed: boolean): void {
    for (const feed of this.#feeds.values())
      if (feed.name === "logs" && wanted(block, feed.filter).includes(log))
        this.#deliver(feed, logText(block, log, removed), this.manners.pushMs);
  }

  open(): readonly string[] {
    return [...this.#feeds.keys()];
  }

  pending(): number {
    return this.#pending.size;
  }

  ask({ method, params }: Request, listener: AnswerListener): Dispatch {
    this.requests.push(method);
    this.#pending.add(listener);
    const delayMs = this.up ? this.manners.latencyMs * (0.5 + this.#runtime.random()) : 10;
    if (!this.up || !(this.manners.mute || this.manners.deafTo.has(method)))
      this.#runtime.after(delayMs, () => {
        if (!this.#pending.delete(listener)) return;
        if (!this.up) return listener.failed(failureOf("unsent", "no connection"), null);
        if (this.manners.limitsLogs && method === "eth_getLogs" && isUnfiltered(params))
          return listener.failed({ ...failureOf("error", TOO_MANY), code: -32005 }, TOO_MANY_RAW);
        const answer = this.#answer(method, params);
        if (answer === null)
          return listener.failed(
            { ...failureOf("error", "unknown block"), code: -32000 },
            Buffer.from(UNKNOWN_BLOCK),
          );
        const result = Buffer.from(answer);
        listener.result(result, { start: 0, end: result.length, idAt: null });
      });
    return { sent: true, cancel: () => void this.#pending.delete(listener) };
  }

  subscribe(params: string, watcher: SubscriptionListener): Dispatch {
    const [name, filter = {}]: [string, ChainFilter?] = JSON.parse(params);
    const seat: Seat = { watcher, started: false };
    const known = this.#feeds.get(params);
    if (known === undefined) this.asked.push(params);
    if (!this.up || this.manners.refuses.has(name)) {
      this.#runtime.after(10, () => {
        if (seat.started) return;
        if (this.up)
          watcher.refused(
            {
              ...failureOf("error", "the method eth_subscribe does not exist/is not available"),
              code: -32601,
            },
            Buffer.from(REFUSAL),
          );
        else watcher.refused(failureOf("unsent", "no connection"), null);
      });
      return { sent: this.up, cancel: () => (seat.started = true) };
    }
    const feed = known ?? {
      params,
      name,
      filter,
      openSockets: new Set(),
      dueMs: this.#runtime.now() + this.manners.ackMs,
      acknowledged: false,
    };
    feed.openSockets.add(seat);
    if (known === undefined) this.#begin(feed);
    else if (feed.acknowledged) this.#start(seat);
    return {
      sent: true,
      cancel: () => {
        if (
          feed.openSockets.delete(seat) &&
          feed.openSockets.size === 0 &&
          this.#feeds.get(params) === feed
        )
          this.#feeds.delete(params);
      },
    };
  }

  /** The connection breaks: all who wait or listen hear of it. */
  drop(): void {
    const openSockets = [...this.#feeds.values()].flatMap((it) => [...it.openSockets]);
    const pending = [...this.#pending];
    for (const feed of this.#feeds.values()) feed.openSockets.clear();
    this.#feeds.clear();
    this.#pending.clear();
    for (const listener of pending)
      listener.failed(failureOf("network", "the connection broke"), null);
    for (const { started, watcher } of openSockets) {
      if (started) watcher.lost("the connection broke");
      else watcher.refused(failureOf("network", "the connection broke"), null);
    }
  }

  #begin(feed: Feed): void {
    this.#feeds.set(feed.params, feed);
    this.#runtime.after(this.manners.ackMs, () => {
      if (this.#feeds.get(feed.params) !== feed) return;
      feed.acknowledged = true;
      for (const seat of [...feed.openSockets]) this.#start(seat);
    });
  }

  #start(seat: Seat): void {
    seat.started = true;
    seat.watcher.started();
  }

  #deliver(feed: Feed, text: string, delayMs: number): void {
    if (this.manners.stale) return;
    const times = this.#runtime.random() < this.manners.repeat ? 2 : 1;
    feed.dueMs = Math.max(feed.dueMs, this.#runtime.now() + delayMs);
    this.#runtime.after(feed.dueMs - this.#runtime.now(), () => {
      for (let n = 0; n < times; n++)
        for (const seat of [...feed.openSockets])
          if (feed.openSockets.has(seat)) seat.watcher.event(Buffer.from(text));
    });
  }

  #answer(method: string, [first]: readonly unknown[]): string | null {
    switch (method) {
      case "eth_getBlockByNumber":
        return textOf(
          first === "latest"
            ? this.#newestShown()
            : this.#shown(this.#chain.at(this.tip, Number(first))),
          this.manners.blooms,
        );
      case "eth_getBlockByHash":
        return textOf(this.#shown(this.#chain.byHash(String(first))), this.manners.blooms);
      case "eth_getLogs": {
        const { blockHash, ...filter } = first as ChainFilter & { readonly blockHash: string };
        const block = this.#shown(this.#chain.byHash(blockHash));
        const { hidesLogs, unknownMs } = this.manners;
        if (
          block !== undefined &&
          this.#runtime.now() < (this.#followed.get(block.hash) ?? 0) + unknownMs
        )
          return null;
        if (hidesLogs) return "[]";
        return block === undefined
          ? "null"
          : `[${wanted(block, filter).map((log) => logText(block, log))}]`;
      }
      default:
        throw new Error(`nobody asks ${method} here`);
    }
  }

  /** A node knows every block it followed, and shows it after a moment. */
  #shown(block: ChainBlock | undefined): ChainBlock | undefined {
    return block === undefined ||
      block.number > this.tip.number ||
      (this.#hidden.get(block.hash) ?? 0) > this.#runtime.now()
      ? undefined
      : block;
  }

  #newestShown(): ChainBlock | undefined {
    let block: ChainBlock | undefined = this.tip;
    while (block !== undefined && this.#shown(block) === undefined)
      block = this.#chain.byHash(block.parentHash);
    return block;
  }
}

function isUnfiltered([first]: readonly unknown[]): boolean {
  const { address, topics } = first as ChainFilter;
  return address === undefined && topics === undefined;
}

function textOf(block: ChainBlock | undefined, blooms: Blooms): string {
  return block === undefined ? "null" : blockText(block, blooms);
}

function failureOf(kind: Failure["kind"], message: string): Failure {
  return { kind, httpStatus: 0, retryAfter: null, code: null, message, data: null };
}
