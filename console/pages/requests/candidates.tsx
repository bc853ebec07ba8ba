// Candidates of a call with what decided their order, and those that were excluded.
import type { JSX } from "preact";
import { Badge } from "../../components/badge.tsx";
import { ShareBar } from "../../components/card.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { count, DASH, milliseconds, share, success } from "../../format/numbers.ts";
import { CIRCUITS } from "../../health/judge.ts";
import type { Decision } from "./decision-page.tsx";

/** A candidate of a plan; of a what-if also how often it would come first. */
export type Candidate = Decision["candidates"][number] & { readonly first_share?: number };
type ExcludedProvider = Decision["excluded"][number];

/** The candidates in order. */
export function Candidates({
  candidates,
}: {
  readonly candidates: readonly Candidate[];
}): JSX.Element {
  const hasShares = candidates.some(({ first_share: first }) => first !== undefined);
  return (
    <Table
      name="candidates"
      caption="Candidates"
      columns={hasShares ? [...COLUMNS, FIRST] : COLUMNS}
      rows={candidates}
      keyOf={({ provider, transport }) => `${provider} ${transport}`}
    />
  );
}

const FIRST: Column<Candidate> = {
  id: "first",
  label: "Comes first",
  kind: "wide",
  render: ({ first_share: first }) => <ShareBar value={first ?? null} text={share(first)} />,
};

const COLUMNS: readonly Column<Candidate>[] = [
  {
    id: "provider",
    label: "Provider",
    kind: "lead",
    render: ({ provider, transport, backup }) => (
      <span class="wrap-anywhere">
        {provider}
        <small>
          {transport === "ws" ? "WebSocket" : "HTTP"}
          {backup ? ", backup" : ""}
        </small>
      </span>
    ),
  },
  {
    id: "decided",
    label: "Decided by",
    kind: "wide",
    render: ({ decided_by: text }) => text,
  },
  {
    id: "circuit",
    label: "Circuit",
    render: ({ circuit, limited, stalled }) => (
      <>
        <Badge tone={CIRCUITS[circuit].tone}>{CIRCUITS[circuit].word}</Badge>
        <small>
          {[limited ? "limited" : "", stalled ? "stalled" : ""].filter(Boolean).join(", ")}
        </small>
      </>
    ),
  },
  { id: "tier", label: "Tier", kind: "number", render: ({ tier }) => tier },
  {
    id: "latency",
    label: "Latency ms",
    kind: "number",
    render: ({ reading }) => milliseconds(reading?.latency_ms),
  },
  {
    id: "success",
    label: "Success",
    kind: "number",
    render: ({ reading }) => success(reading?.success_rate),
  },
  {
    id: "calls",
    label: "Readings",
    kind: "number",
    title: "Calls that the reading stands on",
    render: ({ reading }) => count(reading?.calls),
  },
  {
    id: "weight",
    label: "Weight",
    kind: "number",
    render: ({ weight, latency_weight: drawn }) => (drawn === null ? weight : drawn.toFixed(2)),
  },
  { id: "priority", label: "Priority", kind: "number", render: ({ priority }) => priority },
  { id: "price", label: "Price", kind: "number", render: ({ price }) => price ?? DASH },
];

/** The providers that could not be asked. */
export function Excluded({
  excluded,
}: {
  readonly excluded: readonly ExcludedProvider[];
}): JSX.Element {
  return (
    <Table
      name="excluded"
      caption="Excluded providers"
      columns={EXCLUDED}
      rows={excluded}
      keyOf={({ provider, transport }) => `${provider} ${transport ?? ""}`}
    />
  );
}

const EXCLUDED: readonly Column<ExcludedProvider>[] = [
  {
    id: "provider",
    label: "Provider",
    kind: "lead",
    render: ({ provider }) => <span class="wrap-anywhere">{provider}</span>,
  },
  { id: "reason", label: "Reason", render: ({ reason }) => reason.replaceAll("_", " ") },
  {
    id: "circuit",
    label: "Circuit",
    render: ({ circuit }) => (circuit === null ? DASH : CIRCUITS[circuit].word),
  },
];
