// The same decision under another strategy, or without a provider: computed by the service from
// the inputs that it recorded.

import { useCall, useQuery } from "../../app/app.ts";
import { Card, ShareBar } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { named, Select } from "../../components/controls.tsx";
import { Badge, StateBadge } from "../../components/inline.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { type Column, Table, TableCard } from "../../components/table.tsx";
import {
  count,
  DASH,
  milliseconds,
  share,
  success,
  textList,
  transportName,
} from "../../format/text.ts";
import { CIRCUITS } from "../../health/states.ts";
import type { Decision } from "./decision-sentence.ts";

/** The question and its answer. */
export function WhatIf({ decision }: { readonly decision: Decision }) {
  const [chosen, setStrategy] = useQuery("strategy");
  const [without, setWithout] = useQuery("without");
  const { id, strategies } = decision;
  const own = decision.strategy ?? strategies[0];
  const strategy = strategies.find((each) => each === chosen) ?? own;
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
            value={strategy ?? ""}
            options={named(strategies)}
            choose={setStrategy}
          />
          <Select
            label="Without"
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
export function Candidates(props: { readonly candidates: readonly Candidate[] }) {
  const { candidates } = props;
  const hasShares = candidates.some(({ first_share: first }) => first !== undefined);
  return (
    <Table
      name="candidates"
      caption="Candidates"
      columns={filled(hasShares ? [...COLUMNS, FIRST] : COLUMNS, candidates)}
      rows={candidates}
      keyOf={({ provider, transport }) => `${provider} ${transport}`}
    />
  );
}

const FIRST: Column<Candidate> = column.of(
  "first",
  "Comes first",
  ({ first_share: first }) => <ShareBar value={first ?? null} text={share(first)} />,
  "wide",
);

const COLUMNS: readonly Column<Candidate>[] = [
  column.of("provider", "Provider", ({ provider }) => provider, {
    kind: "lead",
    note: ({ transport, backup }) => textList([transportName(transport), backup && "backup"]),
  }),
  column.of("decided", "Decided by", (candidate) => candidate.decided_by, "wide"),
  column.of("circuit", "Circuit", ({ circuit }) => <StateBadge {...CIRCUITS[circuit]} />, {
    note: ({ limited, stalled }) => textList([limited && "limited", stalled && "stalled"]),
  }),
  column.of("tier", "Tier", ({ tier }) => tier, "number"),
  column.of("latency", "Latency ms", ({ reading }) => milliseconds(reading?.latency_ms), "number"),
  column.of("success", "Success", ({ reading }) => success(reading?.success_rate), "number"),
  column.of("calls", "Readings", ({ reading }) => count(reading?.calls), {
    kind: "number",
    title: "Calls that the reading stands on",
  }),
  column.of("weight", "Weight", (row) => row.latency_weight?.toFixed(2) ?? row.weight, "number"),
  column.of("priority", "Priority", ({ priority }) => priority, "number"),
  column.of("price", "Price", ({ price }) => price ?? DASH, "number"),
];

/** The columns that have a value in some row. */
function filled<Row>(columns: readonly Column<Row>[], rows: readonly Row[]) {
  return columns.filter(({ render }) => rows.some((row) => render(row) !== DASH));
}

/** The providers that could not be asked. */
export function Excluded({ excluded }: Pick<Decision, "excluded">) {
  return (
    <TableCard
      title="Excluded"
      lead="They could not be asked for this call."
      name="excluded"
      columns={filled(EXCLUDED, excluded)}
      rows={excluded}
      keyOf={({ provider, transport }) => `${provider} ${transport ?? ""}`}
    />
  );
}

const EXCLUDED: readonly Column<ExcludedProvider>[] = [
  column.of("provider", "Provider", ({ provider }) => provider, "lead"),
  column.of("reason", "Reason", ({ reason }) => reason.replaceAll("_", " ")),
  column.of("circuit", "Circuit", ({ circuit }) =>
    circuit === null ? DASH : CIRCUITS[circuit].word,
  ),
];
