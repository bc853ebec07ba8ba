// The subscriptions upstream: who feeds them, how often they moved, how far behind they are.
import type { JSX } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { eventColumns, STREAM_STATES, sourceColumns } from "../../components/stream-columns.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { compact, count, milliseconds } from "../../format/numbers.ts";

type Streams = AnswerOf<"GET /api/v1/operator/streams">;
type Totals = Streams["totals"];
type StreamRow = Streams["streams"][number] & { readonly at: number };

const POLL_MS = 3_000;

/** The page of streams. */
export function StreamsPage(): JSX.Element {
  const { client } = useApp();
  const streams = useResource("streams", POLL_MS, (signal) =>
    client.call("GET /api/v1/operator/streams", {}, signal),
  );
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

function StreamsView({ totals, streams, truncated }: Streams): JSX.Element {
  const rows = streams.map((stream, at) => ({ ...stream, at }));
  return (
    <>
      <Figures>
        <Figure label="Streams" value={count(totals.streams)} />
        <Figure label="Subscribers" value={count(totals.subscribers)} />
        <Figure label="Events" value={compact(totals.events)} note="each counted once" />
        <Figure label="Failovers" value={count(sumOf(totals.failovers))} />
        <Figure label="Blocks filled" value={count(totals.blocks_filled)} />
        <Figure label="Ended" value={count(totals.ended)} note="could not go on without a gap" />
      </Figures>
      <Card
        title="Open streams"
        lead={truncated ? "The most subscribed ones; there are more." : undefined}
        flush
      >
        <Table
          name="streams"
          caption="Open streams"
          columns={COLUMNS}
          rows={rows}
          keyOf={({ at, worker }) => `${worker} ${at}`}
          order="state"
          textOf={({ chain, profile, kind, provider, state }) =>
            `${chain} ${profile} ${kind} ${provider ?? ""} ${STREAM_STATES[state].word}`
          }
          empty="Nobody subscribes to anything"
        />
      </Card>
      <Reasons totals={totals} />
    </>
  );
}

const FAILOVERS: Readonly<Record<string, string>> = {
  lost: "Connection lost",
  stale_heads: "Stale heads",
  far: "Too many blocks missing",
  unanswered: "Missing blocks not given",
  backlog: "Too much held back",
  removed: "Provider removed",
  missing_logs: "Left out logs",
};
const CHECKS: Readonly<Record<string, string>> = {
  agreed: "Agreed",
  missing: "Left out by the stream's provider",
  surplus: "Left out by the one asked",
  unanswered: "Unanswered",
  over_budget: "Over the budget",
  given_up: "Too few answered",
  calls: "Calls for checks",
};

function Reasons({ totals }: { readonly totals: Totals }): JSX.Element {
  return (
    <div class="grid grid-2">
      <Card title="Failovers by reason">
        <Counts counts={totals.failovers} words={FAILOVERS} />
      </Card>
      <Card title="Checks of logs" lead="Another provider is asked whether logs were left out.">
        <Counts counts={totals.log_checks} words={CHECKS} />
      </Card>
    </div>
  );
}

interface CountsProps {
  readonly counts: Readonly<Record<string, number>>;
  readonly words: Readonly<Record<string, string>>;
}

function Counts({ counts, words }: CountsProps): JSX.Element {
  return (
    <dl class="facts facts-counts">
      {Object.entries(counts).map(([name, n]) => (
        <>
          <dt key={`${name} name`}>{words[name] ?? name}</dt>
          <dd key={name}>{count(n)}</dd>
        </>
      ))}
    </dl>
  );
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, n) => total + n, 0);
}

const COLUMNS: readonly Column<StreamRow>[] = [
  {
    id: "kind",
    label: "Subscription",
    kind: "lead",
    value: ({ kind }) => kind,
    render: ({ kind, chain, profile }) => (
      <>
        {kind}
        <small>
          {chain}, {profile}
        </small>
      </>
    ),
  },
  ...sourceColumns<StreamRow>("Source"),
  {
    id: "lag",
    label: "Lag ms",
    kind: "number",
    title: "From the provider's event to its callers, on average",
    value: ({ lag_ms: ms }) => ms,
    render: ({ lag_ms: ms }) => milliseconds(ms),
  },
  ...eventColumns<StreamRow>(),
];
