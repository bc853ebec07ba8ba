// The columns that every table of subscriptions has: how each is, who feeds it, what it counted.

import type { AnswerOf } from "../api/contract-types.ts";
import { DASH } from "../format/text.ts";
import * as column from "./columns.tsx";
import type { Word } from "./inline.tsx";
import type { Column } from "./table.tsx";

type Stream = AnswerOf<"GET /api/v1/operator/streams">["streams"][number];
type State = Stream["state"];
type Source = "state" | "provider" | "pinned" | "subscribers" | "block_height" | "blocks_behind";
type ShownStream = Pick<Stream, Source | "events" | "failovers" | "blocks_filled">;

/** How each state is shown. */
export const STREAM_STATES: Readonly<Record<State, Word>> = {
  opening: { tone: "idle", word: "Opening" },
  live: { tone: "good", word: "Live" },
  recovering: { tone: "warn", word: "Recovering" },
};

/** Why streams moved to another provider. */
export const FAILOVER_WORDS = {
  lost: "Connection lost",
  stale_heads: "Stale heads",
  far: "Too many blocks missing",
  unanswered: "Missing blocks not given",
  backlog: "Too much held back",
  removed: "Provider removed",
  missing_logs: "Left out logs",
};

/** What checks of logs came to. */
export const CHECK_WORDS = {
  agreed: "Agreed",
  missing: "Left out by the stream's provider",
  surplus: "Left out by the one asked",
  unanswered: "Unanswered",
  over_budget: "Over the budget",
  given_up: "Too few answered",
  calls: "Calls for checks",
};

type Counts = Readonly<Record<string, number>>;

/** All counts together. */
export function sumOf(counts: Counts): number {
  return Object.values(counts).reduce((total, n) => total + n, 0);
}

/** State, source under this label, subscribers and blocks. */
export function sourceColumns<Row extends ShownStream>(label: string): readonly Column<Row>[] {
  return [
    column.state("state", "State", ({ state }) => STREAM_STATES[state], {
      value: ({ state }) => ["recovering", "opening", "live"].indexOf(state),
    }),
    column.text("provider", label, ({ provider }) => provider, {
      render: ({ provider, pinned }) => (
        <span class="wrap-anywhere">
          {provider ?? DASH}
          {pinned ? ", pinned" : ""}
        </span>
      ),
    }),
    column.number("subscribers", "Subscribers", ({ subscribers }) => subscribers),
    column.number("height", "Height", ({ block_height: height }) => height),
    column.number("behind", "Behind", ({ blocks_behind: behind }) => behind),
  ];
}

/** Events, failovers and filled blocks. */
export function eventColumns<Row extends ShownStream>(): readonly Column<Row>[] {
  return [
    column.number("events", "Events", ({ events }) => events),
    column.number("failovers", "Failovers", ({ failovers }) => failovers),
    column.number("filled", "Blocks filled", ({ blocks_filled: filled }) => filled),
  ];
}
