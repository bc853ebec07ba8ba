// The providers of a profile on a chain, one row for each transport in use; a row opens to what
// each method came to.

import { ForOperator, useIsOperator } from "../app/app.ts";
import { pathTo } from "../app/router.ts";
import {
  count,
  duration,
  milliseconds,
  share,
  success,
  textList,
  transportName,
} from "../format/text.ts";
import {
  CIRCUITS,
  isSilent,
  learnedNotes,
  limitNotes,
  type ProviderMetrics,
  type ProviderPlace,
  shownTransports,
  stateWord,
  type TransportMetrics,
  transportNotes,
} from "../health/states.ts";
import { ShareBar } from "./card.tsx";
import * as column from "./columns.tsx";
import { Clock, Dot, Link, Name, ProviderLink, Time } from "./inline.tsx";
import { ProviderActions } from "./provider-actions.tsx";
import { type Column, Table, TableCard } from "./table.tsx";

/** A row: one transport of a provider. */
interface ProviderRow extends ProviderPlace {
  readonly transport: TransportMetrics;
}

const LOW_SUCCESS = 0.9;

interface ProviderTableProps {
  readonly title: string;
  readonly places: readonly ProviderPlace[];
  /** What its rows are told by: the providers of a chain, or the chains of a provider. */
  readonly by: keyof typeof LEADS;
  /** Reads the page again. */
  readonly changed: () => void;
}

/** Providers, one row for each transport in use. */
export function ProviderTable({ title, places, by, changed }: ProviderTableProps) {
  const rows = places.flatMap((place) =>
    shownTransports(place.provider).map((transport): ProviderRow => ({ ...place, transport })),
  );
  return (
    <TableCard
      title={title}
      lead={
        (useIsOperator()
          ? "Open a row to test or cordon the provider, and to see its methods. "
          : "Open a row to see its methods. ") +
        "A dash means unknown. Percentiles are of the latest few thousand answers."
      }
      name="providers"
      columns={[LEADS[by], ...COLUMNS]}
      rows={rows}
      keyOf={keyOf}
      textOf={({ profile, chain, provider, transport }) =>
        `${by === "place" ? `${profile} ${chain}` : ""} ${provider.name} ${provider.id} ` +
        `${provider.region ?? ""} ${transport.transport} ${stateWord(provider).word}`
      }
      expand={(row) => (
        <div class="stack">
          <ForOperator>
            <ProviderActions places={[row]} changed={changed} />
          </ForOperator>
          <MethodTable methods={row.transport.methods} />
        </div>
      )}
      empty="This profile has no provider on this chain"
    />
  );
}

function keyOf({ profile, chain, provider, transport }: ProviderRow): string {
  return `${profile} ${chain} ${provider.id} ${transport.transport}`;
}

const LEADS = {
  provider: column.text<ProviderRow>("provider", "Provider", ({ provider }) => provider.name, {
    kind: "lead",
    render: ({ provider: { id, name } }) => <ProviderLink {...{ id, name }} />,
    note: (row) =>
      textList([row.provider.id !== row.provider.name && row.provider.id, standingOf(row)]),
  }),
  place: column.text<ProviderRow>("chain", "Chain", ({ chain }) => chain, {
    kind: "lead",
    render: ({ profile, chain }) => <Link to={pathTo("chain", profile, chain)}>{chain}</Link>,
    note: (row) => textList([`profile ${row.profile}`, standingOf(row)]),
  }),
} as const;

const COLUMNS: readonly Column<ProviderRow>[] = [
  column.text("state", "State", ({ provider }) => stateWord(provider).word, {
    kind: "wide",
    render: (row) => <State {...row} />,
  }),
  column.text("share", "Share of traffic", ({ transport }) => transport.share, {
    kind: "wide",
    render: ({ transport }) => <ShareBar value={transport.share} text={share(transport.share)} />,
  }),
  column.number("calls", "Calls", ({ transport }) => transport.calls),
  column.text("success", "Success", ({ provider }) => provider.answered_share, {
    kind: "number",
    title:
      "Of the attempts of the last minute: rate limits and time-outs count as failed, errors of " +
      "callers do not.",
    // The share is the provider's, and stands at its first row.
    render: ({ provider: { answered_share: rate, transports }, transport }) =>
      transport === transports[0] ? (
        <span class={rate !== null && rate < LOW_SUCCESS ? "warn toned" : ""}>{success(rate)}</span>
      ) : (
        ""
      ),
  }),
  column.text("height", "Height", ({ transport }) => transport.block_height, {
    kind: "number",
    render: ({ transport }) => (
      <span class={isSilent(transport) ? "muted" : ""}>{count(transport.block_height)}</span>
    ),
  }),
  column.number("lag", "Lag", ({ transport }) => transport.lag_blocks),
  column.number("p50", "p50 ms", ({ transport }) => transport.latency_ms.p50, milliseconds),
  column.number("p95", "p95 ms", ({ transport }) => transport.latency_ms.p95, milliseconds),
  column.number("p99", "p99 ms", ({ transport }) => transport.latency_ms.p99, milliseconds),
  column.number("probe", "Probe ms", ({ transport }) => transport.latency_ms.probe, milliseconds),
];

function standingOf({ provider, transport }: ProviderRow): string {
  return textList([
    provider.region,
    transportName(transport.transport),
    socketText(provider, transport),
  ]);
}

const SOCKETS: Readonly<Record<string, string>> = {
  idle: "idle",
  connecting: "connecting",
  open: "connected",
};

/** The state of the provider's WebSocket, at its own row or else at the first one. */
function socketText(provider: ProviderMetrics, transport: TransportMetrics): string {
  const own = transport.socket;
  if (own !== undefined) return SOCKETS[own.state] ?? "";
  const isShown = shownTransports(provider).some((each) => each.socket !== undefined);
  const socket = provider.transports.find((each) => each.socket !== undefined)?.socket;
  if (isShown || socket === undefined) return "";
  return `WebSocket ${SOCKETS[socket.state] ?? socket.state}`;
}

/** The state of a provider at its first row, and what holds calls of the transport back. */
function State({ provider, transport }: ProviderRow) {
  const isFirst = transport === provider.transports[0];
  const circuit = CIRCUITS[transport.circuit_breaker_state];
  const { tone, word } = isFirst ? stateWord(provider) : circuit;
  const notes = transportNotes(transport);
  const limits = isFirst && limitNotes(provider);
  const learned = learnedNotes(transport);
  const { cause, state_since: since } = provider;
  const { reason = null, until = null } = provider.cordon ?? {};
  return (
    <>
      <span class="with-dot">
        <Dot tone={tone} /> {word}
      </span>
      {isFirst && cause !== null ? (
        <small class={`${tone} toned`}>
          {cause}
          {reason === null ? null : (
            <>
              : <Name text={reason} />
            </>
          )}
          , <Time at={since} />
          {until === null ? null : (
            <>
              , until <Clock at={until} />
            </>
          )}
        </small>
      ) : null}
      {notes.length === 0 ? null : <small class="warn toned">{notes.join(", ")}</small>}
      {limits && <small>{limits}</small>}
      {learned && <small>Learned: {learned}</small>}
    </>
  );
}

/** What a method came to at a provider. */
export type MethodRow = TransportMetrics["methods"][number];

/** What each method came to in the latest 10 minutes. */
function MethodTable({ methods }: { readonly methods: readonly MethodRow[] }) {
  return (
    <div class="inner-table">
      <Table
        name="methods"
        caption="Methods"
        columns={METHOD_COLUMNS}
        rows={methods}
        keyOf={({ method }) => method}
        order="-calls"
        empty="No calls in the last 10 minutes"
      />
    </div>
  );
}

/** What is known of it. */
export const METHOD_COLUMNS: readonly Column<MethodRow>[] = [
  column.code("method", "Method", ({ method }) => method, { kind: "lead" }),
  column.number("calls", "Calls", ({ calls }) => calls),
  column.number("success", "Success", ({ success_rate: rate }) => rate, success),
  column.number("latency", "Average ms", ({ latency_ms: ms }) => ms, milliseconds),
  column.text("age", "Last call", ({ age_ms: ms }) => -ms, {
    kind: "number",
    render: ({ age_ms: ms }) => `${duration(ms)} ago`,
  }),
];
