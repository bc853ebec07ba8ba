// The book of shares of the workers of one machine, in the memory of their supervisor. What a
// worker had is free as soon as its process has ended.
import type { Bus, WorkerId } from "../../core/workers/bus.ts";
import type { OtherShare, ShareBook, ShareEntry } from "../../core/workers/share-book.ts";
import type { Runtime } from "../../runtime.ts";
import { callsOver, type RemoteObject, serveCalls } from "./remote-calls.ts";

/** The book as one worker calls it. */
interface MachineBook {
  write(entries: readonly ShareEntry[]): Promise<readonly OtherShare[]>;
  /** What others have, and how many times shares were raised before. */
  read(scopes: readonly string[]): Promise<{
    readonly others: readonly OtherShare[];
    readonly raises: number;
  }>;
  /** Writes unless shares were raised since that reading; whether it did. */
  raise(raises: number, entries: readonly ShareEntry[]): Promise<boolean>;
}

const BOOK: RemoteObject<MachineBook> = {
  name: "the shares of this machine",
  methods: ["write", "read", "raise"],
  timeoutMs: 1_000,
};

/** An entry of a worker that has left a bound says what it still uses; it is removed after this. */
const KEPT_MS = 10_000;

interface Row extends ShareEntry {
  readonly atMs: number;
}

/** The shares of all workers. */
export class MachineShares {
  readonly #runtime: Pick<Runtime, "now" | "after">;
  readonly #scopes = new Map<string, Map<WorkerId, Row>>();
  #raises = 0;

  constructor(runtime: Pick<Runtime, "now" | "after">) {
    this.#runtime = runtime;
  }

  serve(bus: Bus): void {
    serveCalls(
      bus,
      BOOK,
      (worker): MachineBook => ({
        write: async (entries) => {
          this.#write(worker, entries);
          return this.#others(
            worker,
            entries.map(({ scope }) => scope),
          );
        },
        read: async (scopes) => ({ others: this.#others(worker, scopes), raises: this.#raises }),
        raise: async (raises, entries) => {
          if (raises !== this.#raises) return false;
          this.#raises++;
          this.#write(worker, entries);
          return true;
        },
      }),
    );
  }

  /** Removes what a worker had whose process has ended. */
  forget(worker: WorkerId): void {
    for (const scope of this.#scopes.keys()) this.#remove(scope, worker);
  }

  #write(worker: WorkerId, entries: readonly ShareEntry[]): void {
    for (const entry of entries) {
      const rows = this.#scopes.get(entry.scope) ?? new Map<WorkerId, Row>();
      const row = { ...entry, atMs: this.#runtime.now() };
      this.#scopes.set(entry.scope, rows.set(worker, row));
      if (entry.wanted === null)
        this.#runtime.after(KEPT_MS, () => {
          if (rows.get(worker) === row) this.#remove(entry.scope, worker);
        });
    }
  }

  #others(worker: WorkerId, scopes: readonly string[]): readonly OtherShare[] {
    const nowMs = this.#runtime.now();
    return scopes.flatMap((scope) =>
      [...(this.#scopes.get(scope) ?? [])].flatMap(([process, { atMs, ...entry }]) =>
        process === worker ? [] : [{ ...entry, process, writtenAt: atMs, ageMs: nowMs - atMs }],
      ),
    );
  }

  #remove(scope: string, worker: WorkerId): void {
    const rows = this.#scopes.get(scope);
    rows?.delete(worker);
    if (rows?.size === 0) this.#scopes.delete(scope);
  }
}

/** The book as this worker has it. */
export function machineShares(bus: Bus): ShareBook {
  const book = callsOver(bus, BOOK);
  return {
    process: bus.self,
    write: (entries) => book.write(entries),
    async raise(scopes, decide) {
      const { others, raises } = await book.read(scopes);
      const entries = decide(others);
      return (await book.raise(raises, entries)) ? entries : null;
    },
    // The supervisor removes them: it knows when a process has ended.
    async remove() {},
  };
}
