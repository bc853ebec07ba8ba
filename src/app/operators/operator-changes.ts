// Actions of operators that every node of a cluster follows: written to the log of changes, and
// read from it. A node that missed a change reads what holds from the store.

import { isRecord, isText, parseJson } from "../../core/fields.ts";
import type { ProviderRef } from "../../hosted/operator/stored-records.ts";
import type { Runtime } from "../../runtime.ts";
import {
  type AskedReload,
  lastAskedReload,
  requestReload,
} from "../../shared/changes/asked-reloads.ts";
import { recordChange } from "../../shared/changes/change-log.ts";
import type { Store } from "../../shared/store/store.ts";
import type { Requester } from "../../web/api/parts.ts";

/** What an operator did. */
export type OperatorChange =
  /** Providers were cordoned or released. */
  | { readonly kind: "cordons" }
  | { readonly kind: "waits_ended"; readonly provider: ProviderRef }
  /** Each node is to read its own configuration again. */
  | { readonly kind: "reload" };

/** Changes of this node and of others. */
export interface OperatorChanges {
  /** The name of this node; null = the service is one node. */
  readonly node: string | null;
  /** Has the other nodes follow; does nothing where there are none. */
  record(change: Exclude<OperatorChange, { readonly kind: "reload" }>): Promise<void>;
  /** Asks the other nodes to reload their configuration. */
  requestReload(by: Requester): Promise<void>;
  /** The last reload that another node was asked for; null = there is none. */
  reloadOfOthers(): Promise<AskedReload | null>;
  /** Passes on what other nodes recorded, until the returned function is called. */
  follow(run: (change: OperatorChange) => void): () => void;
}

/** Where a node of a cluster writes changes. */
export interface ChangesPlace {
  readonly store: Store;
  readonly node: string;
  readonly runtime: Pick<Runtime, "wallMs">;
}

/** Receives what nodes recorded, from where the log of changes is read. */
export class OperatorInbox {
  #run: (change: OperatorChange) => void = () => {};
  #own: string | null = null;

  /** A change of some node, as it was recorded. */
  heard(ref: string): void {
    const recorded = parseRecorded(ref);
    if (recorded !== null && recorded.node !== this.#own) this.#run(recorded.change);
  }

  /** Some may have been missed. */
  missed(): void {
    this.#run({ kind: "cordons" });
    this.#run({ kind: "reload" });
  }

  /** Call once the place of this node is known; null = this node is the only one. */
  changes(place: ChangesPlace | null): OperatorChanges {
    const own = place?.node ?? null;
    this.#own = own;
    return {
      node: own,
      async record(change) {
        if (place === null) return;
        const ref = recordedText(place, change);
        await place.store.transaction((tx) => recordChange(tx, { topic: "operator", ref }));
      },
      async requestReload({ actor, address }) {
        if (place === null) return;
        const { store, node, runtime } = place;
        const ref = recordedText(place, { kind: "reload" });
        await requestReload(store, { node, actor, address }, { ref, wallMs: runtime.wallMs() });
      },
      async reloadOfOthers() {
        const asked = place === null ? null : await lastAskedReload(place.store);
        return asked === null || asked.node === own ? null : asked;
      },
      follow: (next) => {
        this.#run = next;
        return () => {
          this.#run = () => {};
        };
      },
    };
  }
}

function recordedText({ node }: ChangesPlace, change: OperatorChange): string {
  return JSON.stringify({ node, ...change });
}

interface Recorded {
  readonly node: string;
  readonly change: OperatorChange;
}

/** What a node recorded; null = of a later version, or nothing at all. */
function parseRecorded(ref: string): Recorded | null {
  const value = parseJson(ref);
  if (!isRecord(value)) return null;
  const { node } = value;
  if (typeof node !== "string") return null;
  switch (value["kind"]) {
    case "cordons":
      return { node, change: { kind: "cordons" } };
    case "waits_ended": {
      const provider = parseProviderRef(value["provider"]);
      return provider === null ? null : { node, change: { kind: "waits_ended", provider } };
    }
    case "reload":
      return { node, change: { kind: "reload" } };
    default:
      return null;
  }
}

const MAX_TEXT = 512;

/** A provider as other processes name it; null = they do not. */
function parseProviderRef(value: unknown): ProviderRef | null {
  if (!isRecord(value)) return null;
  const { profile, chain, provider } = value;
  return isText(profile, MAX_TEXT) && isText(chain, MAX_TEXT) && isText(provider, MAX_TEXT)
    ? { profile, chain, provider }
    : null;
}
