// What workers tell each other of subscriptions that one of them has at providers, and the check of
// each message on arrival. A feed is such a subscription, by the number that the worker gave it
// which joined.
import { isRecord } from "../../core/fields.ts";
import type { QuestionTopic } from "../../core/workers/bus.ts";

/** Asks a worker to subscribe at a provider and to send the events. */
export interface JoinMessage {
  readonly feed: number;
  /** Profile id and chain name. */
  readonly key: string;
  /** Id of the provider. */
  readonly provider: string;
  /** The JSON array of `eth_subscribe`. */
  readonly params: string;
}

/** Events in order, and feeds that have ended after them. */
export interface EventsMessage {
  readonly events: readonly (readonly [feed: number, raw: Buffer])[];
  readonly lost: readonly number[];
}

const MAX_FEEDS = 20_000;
const MAX_EVENTS = 20_001;
const MAX_TEXT = 512;
const MAX_PARAMS = 1_000_000;

/** Answered with whether the subscription is there. */
export const JOIN: QuestionTopic<JoinMessage, boolean> = {
  name: "feed.join",
  parse(value) {
    if (!isRecord(value)) return null;
    const { feed, key, provider, params } = value;
    return isFeed(feed) &&
      isText(key, MAX_TEXT) &&
      isText(provider, MAX_TEXT) &&
      isText(params, MAX_PARAMS)
      ? { feed, key, provider, params }
      : null;
  },
  parseAnswer: (value) => (typeof value === "boolean" ? value : null),
};

export const LEAVE: QuestionTopic<number, true> = {
  name: "feed.leave",
  parse: (value) => (isFeed(value) ? value : null),
  parseAnswer: (value) => (value === true ? value : null),
};

/** Answered with the feeds that are not known there. */
export const EVENTS: QuestionTopic<EventsMessage, readonly number[]> = {
  name: "feed.events",
  parse(value) {
    if (!isRecord(value)) return null;
    const { events, lost } = value;
    if (!Array.isArray(events) || events.length > MAX_EVENTS || !areFeeds(lost)) return null;
    const all = events.map(eventIn).filter((event) => event !== null);
    return all.length === events.length ? { events: all, lost } : null;
  },
  parseAnswer: (value) => (areFeeds(value) ? value : null),
};

/** Answered with those that are not known there. */
export const CHECK: QuestionTopic<readonly number[], readonly number[]> = {
  name: "feed.check",
  parse: (value) => (areFeeds(value) ? value : null),
  parseAnswer: (value) => (areFeeds(value) ? value : null),
};

function eventIn(value: unknown): readonly [number, Buffer] | null {
  if (!Array.isArray(value) || value.length !== 2) return null;
  const [feed, raw]: readonly unknown[] = value;
  // Copied: an event may be kept for long, and would keep the whole message.
  return isFeed(feed) && raw instanceof Uint8Array ? [feed, Buffer.from(raw)] : null;
}

function areFeeds(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.length <= MAX_FEEDS && value.every(isFeed);
}

function isFeed(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0;
}

function isText(value: unknown, most: number): value is string {
  return typeof value === "string" && value.length <= most;
}
