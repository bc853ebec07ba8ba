// What workers tell each other of subscriptions that one of them has at providers. A feed is such a
// subscription, by the number that the worker gave it which joined.
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

/** Answered with whether the subscription is there. */
export const JOIN: QuestionTopic<JoinMessage, boolean> = { name: "feed.join" };

export const LEAVE: QuestionTopic<number, true> = { name: "feed.leave" };

/** Answered with the feeds that are not known there. */
export const EVENTS: QuestionTopic<EventsMessage, readonly number[]> = { name: "feed.events" };

/** Answered with those that are not known there. */
export const CHECK: QuestionTopic<readonly number[], readonly number[]> = { name: "feed.check" };
