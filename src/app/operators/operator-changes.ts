// Actions of operators that every process of the service follows: written to the log of changes,
// and read from it. A process that missed some reads what holds from the store.
import { z } from "zod";
import { parseJson } from "../../core/fields.ts";
import type { Runtime } from "../../runtime.ts";
import {
  type AskedReload,
  lastAskedReload,
  requestReload,
} from "../../shared/changes/asked-reloads.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import type { Changes } from "../../shared/changes/changes.ts";
import type { Store } from "../../shared/store/store.ts";
import type { PurgeSelection } from "../../upstream/engine/cache/cached-answers.ts";
import type { Requester } from "../../web/api/parts.ts";

/** Everything. */
export const PURGE_ALL: PurgeSelection = {
  profile: null,
  chain: null,
  provider: null,
  method: null,
};

const text = z.string().max(512);
const selected = text.nullable();
const selection = z
  .object({ profile: selected, chain: selected, provider: selected, method: selected })
  // Of a later version: what it means to keep is not known.
  .catch(PURGE_ALL);

const operatorChange = z.discriminatedUnion("kind", [
  /** Providers were cordoned or released. */
  z.object({ kind: z.literal("cordons") }),
  z.object({
    kind: z.literal("waits_ended"),
    provider: z.object({ profile: text, chain: text, provider: text }),
  }),
  /** Each node is to read its own configuration again. */
  z.object({ kind: z.literal("reload") }),
  /** Kept answers are to be removed. */
  z.object({ kind: z.literal("purge"), selection }),
]);

/** What an operator did. */
export type OperatorChange = z.infer<typeof operatorChange>;

/** Where a process writes changes. */
export interface OperatorChangesParts {
  readonly store: Store;
  readonly changes: Changes;
  readonly runtime: Pick<Runtime, "wallMs">;
  /** The name of this process; it does not follow its own changes. */
  readonly process: string;
  /** The name of this node; null = the service is one node. */
  readonly node: string | null;
  readonly onError: (error: unknown) => void;
}

/** Changes of this process and of others. */
export class OperatorChanges {
  readonly #parts: OperatorChangesParts;

  constructor(parts: OperatorChangesParts) {
    this.#parts = parts;
  }

  /** Null = the service is one node. */
  get node(): string | null {
    return this.#parts.node;
  }

  /**
   * Has the other processes follow; resolves with whether all workers of this machine have. False
   * as well where the store does not answer.
   */
  async record(change: OperatorChange): Promise<boolean> {
    const { store, changes, onError } = this.#parts;
    if (changes.isAlone) return true;
    try {
      const ref = this.#refOf(change);
      await store.transaction((tx) => recordChange(tx, { topic: "operator", ref }));
    } catch (error) {
      onError(error);
      return false;
    }
    return this.announce();
  }

  /** Has the other workers of this machine read what was recorded. */
  announce(): Promise<boolean> {
    return this.#parts.changes.announce();
  }

  /** Asks the other nodes to reload their configuration; false = there are none. */
  async requestReload({ actor, address }: Requester): Promise<boolean> {
    const { store, node, runtime } = this.#parts;
    if (node === null) return false;
    const ref = this.#refOf({ kind: "reload" });
    await requestReload(store, { node, actor, address }, { ref, wallMs: runtime.wallMs() });
    return true;
  }

  /** The last reload that another node was asked for; null = there is none. */
  async reloadOfOthers(): Promise<AskedReload | null> {
    const { store, node } = this.#parts;
    const asked = node === null ? null : await lastAskedReload(store);
    return asked === null || asked.node === node ? null : asked;
  }

  /** Passes on what other processes recorded, and all that may have been missed. */
  follow(run: (change: OperatorChange) => Promise<unknown>): void {
    const { changes, process, onError } = this.#parts;
    let running = Promise.resolve();
    const pass = (...all: readonly OperatorChange[]): void => {
      const next = all.map((change) => run(change).catch(onError));
      running = Promise.all([running, ...next]).then(() => {});
    };
    changes.follow({
      changed(read) {
        if (read.kind === "all")
          return pass({ kind: "cordons" }, { kind: "reload" }, PURGE_EVERYTHING);
        for (const { topic, ref } of read.changes) {
          if (topic !== "operator") continue;
          const change = changeOf(ref, process);
          if (change !== null) pass(change);
        }
      },
      settled: () => running,
    });
  }

  #refOf(change: OperatorChange): string {
    return JSON.stringify({ from: this.#parts.process, ...change });
  }
}

const PURGE_EVERYTHING = { kind: "purge", selection: PURGE_ALL } as const;
const sender = z.object({ from: z.string().optional() });

/** What another process recorded; null = nothing that this version knows, or its own change. */
function changeOf(ref: string, process: string): OperatorChange | null {
  const value = parseJson(ref);
  if (sender.safeParse(value).data?.from === process) return null;
  return operatorChange.safeParse(value).data ?? null;
}
