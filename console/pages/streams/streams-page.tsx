// The subscriptions upstream: who feeds them, how often they moved, how far behind they are.

import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import { Card, Facts, figures, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Loaded } from "../../components/page-state.tsx";
import {
  CHECK_WORDS,
  eventColumns,
  FAILOVER_WORDS,
  STREAM_STATES,
  sourceColumns,
  sumOf,
} from "../../components/stream-columns.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { compact, count, milliseconds } from "../../format/text.ts";

type Streams = AnswerOf<"GET /api/v1/operator/streams">;
type Totals = Streams["totals"];
type StreamRow = Streams["streams"][number] & { readonly at: number };

const POLL_MS = 3_000;

/** The page of streams. */
export function StreamsPage() {
  const streams = useCall("GET /api/v1/operator/streams", {}, POLL_MS);
  return (
    <>
      <PageHead
        title="Streams"
        lead="A stream is one subscription at a provider, shared by all who subscribed to the same."
      />
      <Loaded resource={streams}>{(data) => <StreamsView {...data} />}</Loaded>
    </>
  );
}

function StreamsView({ totals, streams, truncated }: Streams) {
  const rows = streams.map((stream, at) => ({ ...stream, at }));
  return (
    <>
      {figures([
        ["Streams", count(totals.streams)],
        ["Subscribers", count(totals.subscribers)],
        ["Events", compact(totals.events), "each counted once"],
        ["Failovers", count(sumOf(totals.failovers))],
        ["Blocks filled", count(totals.blocks_filled)],
        ["Ended", count(totals.ended), "could not go on without a gap"],
      ])}
      <TableCard
        title="Open streams"
        lead={truncated ? "The most subscribed ones; there are more." : undefined}
        name="streams"
        columns={COLUMNS}
        rows={rows}
        keyOf={({ at, worker }) => `${worker} ${at}`}
        order="state"
        textOf={({ chain, profile, kind, provider, state }) =>
          `${chain} ${profile} ${kind} ${provider ?? ""} ${STREAM_STATES[state].word}`
        }
        empty="Nobody subscribes to anything"
      />
      <Reasons totals={totals} />
    </>
  );
}

function Reasons({ totals }: { readonly totals: Totals }) {
  return (
    <div class="grid">
      <Card title="Failovers by reason">
        <Counts counts={totals.failovers} words={FAILOVER_WORDS} />
      </Card>
      <Card title="Checks of logs" lead="Another provider is asked whether logs were left out.">
        <Counts counts={totals.log_checks} words={CHECK_WORDS} />
      </Card>
    </div>
  );
}

interface CountsProps {
  readonly counts: Readonly<Record<string, number>>;
  readonly words: Readonly<Record<string, string>>;
}

function Counts({ counts, words }: CountsProps) {
  const facts = Object.entries(counts).map(([name, n]) => [words[name] ?? name, count(n)] as const);
  return <Facts facts={facts} />;
}

const COLUMNS: readonly Column<StreamRow>[] = [
  column.text("kind", "Subscription", ({ kind }) => kind, {
    kind: "lead",
    note: ({ chain, profile }) => `${chain}, ${profile}`,
  }),
  ...sourceColumns<StreamRow>("Source"),
  {
    ...column.number<StreamRow>("lag", "Lag ms", ({ lag_ms: ms }) => ms, milliseconds),
    title: "From the provider's event to its callers, on average",
  },
  ...eventColumns<StreamRow>(),
];
