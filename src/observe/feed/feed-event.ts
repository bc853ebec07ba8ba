// What the live feed tells of: calls, and changes of what serves them. Values that may be shown to
// the operator: no path, header, parameter, result or signed byte, and errors only redacted.
import type { Transport } from "../../core/provider/profile.ts";
import type { CallEvent } from "./decision.ts";

/** A provider of a profile on a chain, as an event names it. */
interface AboutProvider {
  readonly at: string;
  readonly worker: string;
  readonly profile: string;
  readonly chain: string;
  readonly provider: string;
}

/** The circuit of a provider opened or closed. */
export interface CircuitEvent extends AboutProvider {
  readonly transport: Transport;
  readonly state: "open" | "closed";
  readonly cause: string;
}

/** A provider is asked no more, or again. */
export interface CordonEvent extends AboutProvider {
  readonly transport: Transport;
  readonly cordoned: boolean;
  readonly cause: string;
}

/** The heads of a provider fell behind, or caught up. */
export interface HeadEvent extends AboutProvider {
  readonly behind: boolean;
  readonly lag_blocks: number | null;
}

/** A subscription goes on at another provider. */
export interface StreamEvent {
  readonly at: string;
  readonly worker: string;
  readonly profile: string;
  readonly chain: string;
  readonly kind: string;
  readonly to: string | null;
  readonly reason: string;
}

/** The configuration was reloaded. */
export interface ConfigEvent {
  readonly at: string;
  readonly what: "reloaded";
  readonly profiles: number;
}

/** A node or worker joined or left. */
export interface NodeEvent {
  readonly at: string;
  readonly node: string;
  readonly change: "joined" | "left";
}

/** One event with its type. */
export type FeedEvent =
  | { readonly type: "call"; readonly data: CallEvent }
  | { readonly type: "circuit"; readonly data: CircuitEvent }
  | { readonly type: "cordon"; readonly data: CordonEvent }
  | { readonly type: "head"; readonly data: HeadEvent }
  | { readonly type: "stream"; readonly data: StreamEvent }
  | { readonly type: "config"; readonly data: ConfigEvent }
  | { readonly type: "node"; readonly data: NodeEvent };

/** The types of events. */
export const FEED_EVENT_TYPES = [
  "call",
  "circuit",
  "cordon",
  "head",
  "stream",
  "config",
  "node",
] as const satisfies readonly FeedEvent["type"][];
