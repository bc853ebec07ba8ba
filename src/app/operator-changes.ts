// What operators do at one node of a cluster that the others have to follow: told over the log of
// changes, and heard from it. A node that missed a change reads what holds from the store.
import { type AskedReload, lastAskedReload, requestReload } from "../cluster/asked-reloads.ts";
import { recordChange } from "../cluster/change-log.ts";
import { type Fields, isRecord, parseJson } from "../core/fields.ts";
import type { ProviderRef } from "../hosted/operator/records.ts";
import type { Runtime } from "../runtime.ts";
import type { Store } from "../store/store.ts";
import type { Requester } from "../web/api/operator-providers.ts";

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
export interface OperatorInbox {
  /** A change of some node, as it was recorded. */
  heard(ref: string): void;
  /** Some may have been missed. */
  missed(): void;
}

/** The inbox, until the place of this node is known. */
export interface OpenInbox extends OperatorInbox {
  /** Null = this node is the only one. */
  changes(place: ChangesPlace | null): OperatorChanges;
}

/** Creates the inbox of this process. */
export function createOperatorInbox(): OpenInbox {
  let run: (change: OperatorChange) => void = () => {};
  let own: string | null = null;
  return {
    heard(ref) {
      const recorded = parseRecorded(ref);
      if (recorded !== null && recorded.node !== own) run(recorded.change);
    },
    missed() {
      run({ kind: "cordons" });
      run({ kind: "reload" });
    },
    changes(place) {
      own = place?.node ?? null;
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
        follow(next) {
          run = next;
          return () => {
            run = () => {};
          };
        },
      };
    },
  };
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
  const value = fieldsOf(parseJson(ref));
  const node = value?.["node"];
  if (value === null || typeof node !== "string") return null;
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
  const fields = fieldsOf(value);
  const [profile, chain, provider] = [fields?.["profile"], fields?.["chain"], fields?.["provider"]];
  return isText(profile) && isText(chain) && isText(provider) ? { profile, chain, provider } : null;
}

function fieldsOf(value: unknown): Fields | null {
  return isRecord(value) ? value : null;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.length <= MAX_TEXT;
}
