// The same decision under another strategy, or without a provider: computed by the service from
// the inputs that it recorded.
import type { JSX } from "preact";
import { useCall, useQuery } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, ShareBar } from "../../components/card.tsx";
import { Noted, plainNumber, StateBadge } from "../../components/columns.tsx";
import { named, Select } from "../../components/controls.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { count, DASH, milliseconds, share, success } from "../../format/numbers.ts";
import { CIRCUITS } from "../../health/judge.ts";
import type { Decision } from "./decision-page.tsx";

/** The question and its answer. */
export function WhatIf({ decision }: { readonly decision: Decision }): JSX.Element {
  const [chosen, setStrategy] = useQuery("strategy");
  const [without, setWithout] = useQuery("without");
  const { id, strategies } = decision;
  const strategy = strategies.find((each) => each === chosen) ?? decision.strategy;
  const query = { strategy, ...(without === "" ? {} : { without }) };
  const request = { params: { id }, query };
  const answer = useCall("GET /api/v1/operator/decisions/{id}/what-if", request);
  return (
    <Card
      title="What if"
      lead="Computed from the inputs that were recorded with this call."
      actions={
        <>
          <Select
            label="Strategy"
            name="before"
            value={strategy}
            options={named(strategies)}
            choose={setStrategy}
          />
          <Select
            label="Without"
            name="before"
            value={without}
            options={[{ value: "", label: "nobody left out" }, ...named(decision.order)]}
            choose={setWithout}
          />
        </>
      }
      flush
    >
      <Loaded resource={answer}>
        {({ candidates, same_first: isSame, random }) => (
          <>
            <p class="card-body">
              <Badge tone={isSame ? "idle" : "warn"}>
                {isSame ? "The same provider comes first" : "Another provider comes first"}
              </Badge>{" "}
              <span class="muted small">
                {random
                  ? "The order depends on chance; this one uses the random numbers of this call."
                  : ""}
              </span>
            </p>
            {candidates.length === 0 ? (
              <Empty title="No provider could be asked" />
            ) : (
              <Candidates candidates={candidates} />
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** A candidate of a plan; of a what-if also how often it would come first. */
type Candidate = Decision["candidates"][number] & { readonly first_share?: number };
type ExcludedProvider = Decision["excluded"][number];

/** The candidates in order. */
export function Candidates(props: { readonly candidates: readonly Candidate[] }): JSX.Element {
  const { candidates } = props;
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
      <Noted note={`${transport === "ws" ? "WebSocket" : "HTTP"}${backup ? ", backup" : ""}`}>
        {provider}
      </Noted>
    ),
  },
  { id: "decided", label: "Decided by", kind: "wide", render: (candidate) => candidate.decided_by },
  {
    id: "circuit",
    label: "Circuit",
    render: ({ circuit, limited, stalled }) => (
      <>
        <StateBadge {...CIRCUITS[circuit]} />
        <small>
          {[limited ? "limited" : "", stalled ? "stalled" : ""].filter(Boolean).join(", ")}
        </small>
      </>
    ),
  },
  plainNumber("tier", "Tier", ({ tier }) => tier),
  plainNumber("latency", "Latency ms", ({ reading }) => milliseconds(reading?.latency_ms)),
  plainNumber("success", "Success", ({ reading }) => success(reading?.success_rate)),
  {
    ...plainNumber<Candidate>("calls", "Readings", ({ reading }) => count(reading?.calls)),
    title: "Calls that the reading stands on",
  },
  plainNumber("weight", "Weight", ({ weight, latency_weight: drawn }) =>
    drawn === null ? weight : drawn.toFixed(2),
  ),
  plainNumber("priority", "Priority", ({ priority }) => priority),
  plainNumber("price", "Price", ({ price }) => price ?? DASH),
];

/** The providers that could not be asked. */
export function Excluded({ excluded }: Pick<Decision, "excluded">): JSX.Element {
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
