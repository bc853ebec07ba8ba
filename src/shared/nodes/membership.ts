// Which nodes serve together: read from the store every second, told from memory. A node lives as
// long as its heartbeat advances, by the clock of this machine alone; clocks of others are compared
// with the database's only to warn of them.
import type { Logger } from "pino";
import type { ClusterHealth } from "../../core/cluster-health.ts";
import type { Runtime } from "../../runtime.ts";
import type { Store } from "../store/store.ts";
import { type NodeIdentity, serviceNodeOf } from "./identity.ts";
import { type NodeRow, noteSkew, readNodes } from "./node-rows.ts";

/** A process of a node, as its row tells. */
export interface MemberProcess extends NodeRow {
  readonly responds: boolean;
}

/** Nodes that began to respond, and that ceased to. */
export interface NodesChange {
  readonly joined: readonly string[];
  readonly left: readonly string[];
}

/** Times of a membership. */
export interface MembershipSettings {
  /** Null = as many as were seen in the last hour. */
  readonly expectedNodes: number | null;
  /** Time between two heartbeats of a node. */
  readonly heartbeatMs: number;
}

/** What a membership works with. */
export interface MembershipParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly node: NodeIdentity;
  readonly settings: MembershipSettings;
  readonly log: Pick<Logger, "warn" | "info">;
}

interface ObservedNode {
  readonly row: NodeRow;
  /** When its heartbeat was last seen to advance, on the monotonic clock. */
  readonly advancedAtMs: number;
}

/** Between two readings. */
const POLL_MS = 1_000;
/** Nodes of the last hour count, unless they said that they leave. */
const SEEN_MS = 3_600_000;
/** A node that has not been heard of for this long, or three heartbeats, does not respond. */
const RESPONDS_MS = 5_000;
const HEARTBEATS_MISSED = 3;
/** Clocks that are further apart than this are told of. */
const MAX_SKEW_MS = 5_000;
/** A reading that took longer says too little of the clocks. */
const MAX_ROUND_TRIP_MS = 1_000;
/** The clock of this node is written again when it moved by so much. */
const SKEW_STEP_MS = 500;
/** A database that has not answered for this long is a problem to tell of. */
const SILENT_MS = 5_000;

/** The nodes that serve together. */
export class Membership {
  readonly #parts: MembershipParts;
  #nodes: ReadonlyMap<string, ObservedNode> = new Map();
  #members = 1;
  #skewMs = 0;
  #heardAtMs: number;
  #reading: Promise<void> | null = null;
  #problems: readonly string[] = [];
  /** The nodes that responded at the last reading; null = nothing was read yet. */
  #responding: ReadonlySet<string> | null = null;
  readonly #listeners = new Set<(change: NodesChange) => void>();
  #cancel: () => void;

  constructor(parts: MembershipParts) {
    this.#parts = parts;
    this.#heardAtMs = parts.runtime.now();
    this.#cancel = parts.runtime.after(POLL_MS, () => this.#poll());
  }

  /**
   * Rows of the store that responded at the last reading, workers counted one by one; at least 1.
   */
  get members(): number {
    return this.#members;
  }

  /** For how long the database has not answered this node. */
  silentMs(): number {
    return Math.max(0, this.#parts.runtime.now() - this.#heardAtMs);
  }

  /** Milliseconds since the epoch by the clock of the database, as far as this node knows. */
  databaseMs(): number {
    return this.#parts.runtime.wallMs() - this.#skewMs;
  }

  /** Reads memory only; the same for `nodes`. */
  health(): ClusterHealth {
    const { node, settings } = this.#parts;
    const own = serviceNodeOf(node.id);
    const connected = new Set([own]);
    const responding = new Set([own]);
    const seen = new Set([own]);
    const regions = new Set(node.region === "" ? [] : [node.region]);
    for (const observed of this.#nodes.values()) {
      const { id, state, region } = observed.row;
      if (state === "left") continue;
      seen.add(serviceNodeOf(id));
      if (state !== "alive") continue;
      connected.add(serviceNodeOf(id));
      if (region !== "") regions.add(region);
      if (this.#responds(observed)) responding.add(serviceNodeOf(id));
    }
    const total = settings.expectedNodes ?? seen.size;
    return {
      connected: connected.size,
      responding: responding.size,
      total,
      regions: [...regions].sort(),
      status: statusOf(responding.size, total),
      silentMs: this.silentMs(),
      problems: this.#problemsNow(),
    };
  }

  /** Processes that are there, or were in the last hour. */
  nodes(): readonly MemberProcess[] {
    return Array.from(this.#nodes.values(), (observed) => {
      const { row } = observed;
      // By the clock of the database.
      const heartbeatAtMs = row.heartbeatAtMs - row.skewMs;
      return { ...row, heartbeatAtMs, responds: this.#responds(observed) };
    });
  }

  /** Calls back when nodes joined or left; the result cancels. */
  onNodes(run: (change: NodesChange) => void): () => void {
    this.#listeners.add(run);
    return () => void this.#listeners.delete(run);
  }

  /** Reads the store once; for a start that should know of the others at once. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  close(): void {
    this.#cancel();
  }

  #poll(): void {
    this.#cancel = this.#parts.runtime.after(POLL_MS, () => this.#poll());
    const done = (): void => {
      this.#report();
      this.#compareNodes();
    };
    this.read().then(done, done);
  }

  async #read(): Promise<void> {
    const { store, runtime, node } = this.#parts;
    const startedAtMs = runtime.now();
    const { databaseMs, nodes } = await readNodes(store, SEEN_MS);
    const nowMs = runtime.now();
    this.#heardAtMs = startedAtMs;
    this.#nodes = new Map(
      nodes.map((row) => [row.id, observedAgain(this.#nodes.get(row.id), row, nowMs)]),
    );
    // Without the database the number that is known stays: others may serve as well as before.
    this.#members = Math.max(1, this.#respondingRows().length);
    if (nodes.length === 0 || nowMs - startedAtMs > MAX_ROUND_TRIP_MS) return;
    this.#skewMs = runtime.wallMs() - (nowMs - startedAtMs) / 2 - databaseMs;
    // A row that is written anew, when this node joins, says nothing of its clock yet.
    const written = this.#nodes.get(node.id)?.row;
    if (written === undefined || Math.abs(this.#skewMs - written.skewMs) < SKEW_STEP_MS) return;
    await noteSkew(store, node.id, this.#skewMs);
  }

  #compareNodes(): void {
    // Nothing was heard: that says nothing of the others.
    if (this.silentMs() > 2 * POLL_MS) return;
    const now = new Set(this.#respondingRows().map(({ id }) => serviceNodeOf(id)));
    const before = this.#responding;
    this.#responding = now;
    if (before === null) return;
    const joined = [...now].filter((id) => !before.has(id));
    const left = [...before].filter((id) => !now.has(id));
    if (joined.length + left.length > 0) for (const run of this.#listeners) run({ joined, left });
  }

  #respondingRows(): readonly NodeRow[] {
    const observed = [...this.#nodes.values()].filter((each) => this.#responds(each));
    return observed.map(({ row }) => row);
  }

  #responds({ row, advancedAtMs }: ObservedNode): boolean {
    const { runtime, settings, node } = this.#parts;
    if (row.id === node.id) return true;
    const patienceMs = Math.max(RESPONDS_MS, HEARTBEATS_MISSED * settings.heartbeatMs);
    return row.state === "alive" && runtime.now() - advancedAtMs <= patienceMs;
  }

  #problemsNow(): readonly string[] {
    const { node } = this.#parts;
    const problems: string[] = [];
    const silentMs = this.silentMs();
    if (silentMs >= SILENT_MS)
      problems.push(`the database has not answered for ${Math.floor(silentMs / 1_000)} s`);
    const others = this.#respondingRows().filter(({ id }) => id !== node.id);
    // The database's clock is one of those that have to agree.
    const skews = [0, this.#skewMs, ...others.map(({ skewMs }) => skewMs)];
    const apartMs = Math.max(...skews) - Math.min(...skews);
    if (apartMs > MAX_SKEW_MS)
      problems.push(`clocks of nodes and the database are ${Math.round(apartMs / 1_000)} s apart`);
    return problems;
  }

  /** Logs problems when they come and when they go; not each second. */
  #report(): void {
    const { log } = this.#parts;
    const kinds = this.#problemsNow().map((problem) => problem.replace(/\d+ s/, "some time"));
    const problems = this.#problemsNow();
    for (const [at, kind] of kinds.entries())
      if (!this.#problems.includes(kind)) log.warn({ problem: problems[at] }, "cluster");
    for (const kind of this.#problems)
      if (!kinds.includes(kind)) log.info({ problem: kind }, "cluster: this is over");
    this.#problems = kinds;
  }
}

function observedAgain(
  before: ObservedNode | undefined,
  row: NodeRow,
  nowMs: number,
): ObservedNode {
  const isSilent = before?.row.epoch === row.epoch && before.row.flushSeq === row.flushSeq;
  return { row, advancedAtMs: isSilent ? before.advancedAtMs : nowMs };
}

/** Source: service specification, evaluation of the cluster. */
function statusOf(responding: number, total: number): ClusterHealth["status"] {
  if (responding >= total) return "healthy";
  return responding * 2 >= total ? "degraded" : "critical";
}
