// Records of filters in memory, as the nodes of a simulated service share them: every statement
// takes its time, and a node can lose its way to them.
import type { FilterRecord, FilterRecords } from "../../src/core/stream/filter-record.ts";
import type { SimulatedWorld } from "./runtime.ts";

type Row = Omit<FilterRecord, "idleMs"> & { readonly polledAtMs: number };

/** Shared records. */
export interface FakeRecords {
  readonly rows: ReadonlyMap<string, Row>;
  /** Statements so far, by name. */
  readonly counts: ReadonlyMap<string, number>;
  /** Changes a row as nobody here does. */
  change(id: string, to: Partial<Row>): void;
  /** The records as one process reads and writes them. */
  of(node: string): FakeRecordLink;
}

/** The way of one process to the records. */
export interface FakeRecordLink {
  readonly records: FilterRecords;
  /**
   * `cut`: statements fail; `unanswered`: they fail here, but have their effect; `stalled`,
   * `dead`: they have none, and are never answered.
   */
  state: "open" | "cut" | "unanswered" | "stalled" | "dead";
}

/** Creates an empty table; `delayMs` is how long a statement takes. */
export function fakeRecords(world: SimulatedWorld, delayMs: () => number): FakeRecords {
  const rows = new Map<string, Row>();
  const counts = new Map<string, number>();
  return {
    rows,
    counts,
    change(id, to) {
      const row = rows.get(id);
      if (row !== undefined) rows.set(id, { ...row, ...to });
    },
    of: (node) => linkOf({ world, rows, counts, delayMs }, node),
  };
}

interface Table {
  readonly world: SimulatedWorld;
  readonly rows: Map<string, Row>;
  readonly counts: Map<string, number>;
  readonly delayMs: () => number;
}

function linkOf(table: Table, node: string): FakeRecordLink {
  const { world, rows, counts, delayMs } = table;
  const link: FakeRecordLink = { state: "open", records: recordsOf(rows, world, node, run) };

  function run<T>(name: string, statement: () => T): Promise<T> {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return new Promise((resolve, reject) => {
      const [thereMs, backMs] = [delayMs(), delayMs()];
      world.after(thereMs, () => {
        if (link.state === "cut") return reject(new Error("the database is away"));
        if (link.state === "stalled" || link.state === "dead") return;
        const result = statement();
        if (link.state === "unanswered") return reject(new Error("the database is away"));
        world.after(backMs, () => resolve(result));
      });
    });
  }
  return link;
}

type Run = <T>(name: string, statement: () => T) => Promise<T>;

function recordsOf(
  rows: Map<string, Row>,
  world: SimulatedWorld,
  node: string,
  run: Run,
): FilterRecords {
  const own = (id: string, claim: number): Row | null => {
    const row = rows.get(id);
    return row?.claim === claim && row.node === node ? row : null;
  };
  return {
    add: (origin, mark) =>
      run("add", () => {
        if (rows.has(origin.id) && own(origin.id, 1) === null) return;
        const polledAtMs = world.now();
        rows.set(origin.id, { ...origin, node, claim: 1, isAnswering: false, mark, polledAtMs });
      }),
    read: (id) =>
      run("read", () => {
        const row = rows.get(id);
        if (row === undefined) return null;
        const { polledAtMs, ...rest } = row;
        return { ...rest, idleMs: world.now() - polledAtMs };
      }),
    take: ({ id, claim }) =>
      run("take", () => {
        const row = rows.get(id);
        if (row?.claim !== claim) return false;
        const polledAtMs = world.now();
        rows.set(id, { ...row, node, claim: claim + 1, isAnswering: false, polledAtMs });
        return true;
      }),
    write: (updates) =>
      run("write", () => {
        const kept = new Set<string>();
        for (const { id, claim, isAnswering, mark, idleMs } of updates) {
          const row = own(id, claim);
          if (row === null) continue;
          const polledAtMs = Math.max(row.polledAtMs, world.now() - idleMs);
          rows.set(id, { ...row, isAnswering, mark: mark ?? row.mark, polledAtMs });
          kept.add(id);
        }
        return kept;
      }),
    kept: (filters) =>
      run("kept", () => new Set(filters.flatMap(({ id, claim }) => (own(id, claim) ? [id] : [])))),
    touch: (id) =>
      run("touch", () => {
        const row = rows.get(id);
        if (row !== undefined) rows.set(id, { ...row, polledAtMs: world.now() });
      }),
    remove: (id, owner) =>
      run("remove", () => {
        const row = rows.get(id);
        if (row?.owner !== owner) return null;
        rows.delete(id);
        return row.node;
      }),
    removeKept: ({ id, claim }, idleMs) =>
      run("removeKept", () => {
        const row = own(id, claim);
        if (row !== null && world.now() - row.polledAtMs >= idleMs) rows.delete(id);
      }),
  };
}
