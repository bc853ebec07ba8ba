// What the live feed tells of: calls, and changes of what serves them. Values that may be shown to
// the operator: no path, header, parameter, result or signed byte, and errors only redacted.
import type { Transport } from "../../core/provider/profile.ts";
import type { CallEvent } from "./decision.ts";

interface AboutChain {
  readonly at: string;
  readonly worker: string;
  readonly profile: string;
  readonly chain: string;
}

/** A provider of a profile on a chain, as an event names it. */
interface AboutProvider extends AboutChain {
  readonly provider: string;
}

interface AboutTransport extends AboutProvider {
  readonly transport: Transport;
  readonly cause: string;
}

/** What an event of each type says. */
interface FeedData {
  readonly call: CallEvent;
  /** The circuit of a provider opened or closed. */
  readonly circuit: AboutTransport & { readonly state: "open" | "closed" };
  /** A provider is asked no more, or again. */
  readonly cordon: AboutTransport & { readonly cordoned: boolean };
  /** The heads of a provider fell behind, or caught up. */
  readonly head: AboutProvider & { readonly behind: boolean; readonly lag_blocks: number | null };
  /** An incident was opened, or is over. */
  readonly incident: AboutChain & {
    readonly incident: string;
    readonly change: "opened" | "closed";
    /** Null = it is of the chain. */
    readonly provider: string | null;
    readonly cause: string;
    readonly words: string;
    readonly started_at: string;
    readonly ended_at: string | null;
    readonly users: number;
  };
  /** A subscription goes on at another provider. */
  readonly stream: AboutChain & {
    readonly kind: string;
    readonly to: string | null;
    readonly reason: string;
  };
  /** The configuration was reloaded. */
  readonly config: { readonly at: string; readonly what: "reloaded"; readonly profiles: number };
  /** A node or worker joined or left. */
  readonly node: {
    readonly at: string;
    readonly node: string;
    readonly change: "joined" | "left";
  };
}

/** One event with its type. */
export type FeedEvent = {
  readonly [T in keyof FeedData]: { readonly type: T; readonly data: FeedData[T] };
}[keyof FeedData];

/** The types of events. */
export const FEED_EVENT_TYPES = [
  "call",
  "circuit",
  "cordon",
  "head",
  "incident",
  "stream",
  "config",
  "node",
] as const satisfies readonly FeedEvent["type"][];

/** An event that is no call. */
export type ChangeEvent = Exclude<FeedEvent, { readonly type: "call" }>;

/**
 * Whether a change is remembered among the latest: incidents stand for the circuits, heads and
 * refusals of one provider, which may change every minute.
 */
export function isRemembered({ type, data }: ChangeEvent): boolean {
  if (type === "cordon") return data.cause === "operator";
  return type === "incident" || type === "config" || type === "node";
}
