// The same call asked of every provider, side by side, for the operator: latency, size, which
// answers are equal, and where one differs from what most say.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { jsonText } from "../../api/json.ts";
import { useAction } from "../../api/resource.ts";
import { useApp, useCall } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { ActionNotice, Button, Notice, named, Select } from "../../components/controls.tsx";
import { DiffView } from "../../components/diff-view.tsx";
import { ProviderLink, type Word } from "../../components/inline.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { bytes, DASH, milliseconds, transportName, visible } from "../../format/text.ts";
import { Json } from "./answer-card.tsx";
import { comparisonText, groupsOf } from "./compare.ts";
import type { TestCall } from "./rpc-call.ts";

type Comparison = AnswerOf<"POST /api/v1/operator/compare">;

/** The card. */
export function CompareCard({ call, why }: { readonly call: TestCall; readonly why: string }) {
  const { client } = useApp();
  const [comparison, setComparison] = useState<Comparison | null>(null);
  const action = useAction();
  const { chain, method, params } = call;
  const metrics = useCall("GET /api/metrics/{chain}", { params: { chain } });
  const profiles = metrics.data?.profiles.map(({ profile }) => profile) ?? [];
  const [chosen, setChosen] = useState("");
  const profile = chosen === "" ? (call.profile ?? profiles[0] ?? "") : chosen;
  const compare = (): void => {
    const body = { profile, chain, method, params: [...params] };
    setComparison(null);
    action.run(client.call("POST /api/v1/operator/compare", { body }), setComparison);
  };
  return (
    <Card
      title="Compare providers"
      lead="The call above, asked of every provider of a profile; reads only, ten times a minute"
      actions={
        <>
          <Select
            label="Profile to compare"
            hidesName
            value={profile}
            options={named(profiles)}
            choose={setChosen}
          />
          <Button disabled={action.busy || profile === "" || why !== ""} press={compare}>
            {action.busy ? "Asking all" : "Compare"}
          </Button>
        </>
      }
      flush
    >
      <ActionNotice failure={action.failure} />
      {comparison === null ? null : <Results comparison={comparison} />}
    </Card>
  );
}

/** A result with the group of equal ones that it is in. */
type Row = Comparison["results"][number] & {
  readonly group: number | null;
  /** Whether another provider gave the same answer. */
  readonly isShared: boolean;
};

function Results({ comparison }: { readonly comparison: Comparison }) {
  const { results } = comparison;
  const groups = groupsOf(results);
  const rows = results.map((result, at): Row => {
    const group = groups[at] ?? null;
    return { ...result, group, isShared: groups.filter((other) => other === group).length > 1 };
  });
  const usual = rows.find(({ group }) => group === 0) ?? null;
  const { tone, text } = comparisonText(results);
  return (
    <>
      <Notice tone={tone}>{text}</Notice>
      <Table
        name="compare"
        caption="Providers compared"
        columns={COLUMNS}
        rows={rows}
        keyOf={keyOf}
        expand={(row) => <Detail row={row} usual={usual} />}
      />
    </>
  );
}

function keyOf({ provider, transport }: Row): string {
  return `${provider} ${transport}`;
}

const COLUMNS: readonly Column<Row>[] = [
  column.text("provider", "Provider", (row) => row.provider, {
    kind: "lead",
    render: ({ provider }) => <ProviderLink id={provider} />,
    note: (row) => transportName(row.transport),
  }),
  column.state("outcome", "Outcome", wordOf, { value: (row) => row.group }),
  column.number("latency", "Latency, ms", (row) => row.latency_ms, milliseconds),
  column.number("bytes", "Size", (row) => row.bytes, bytes),
  column.of(
    "error",
    "Error",
    ({ error }) =>
      error ? visible(`${error.category.replaceAll("_", " ")}: ${error.message}`) : DASH,
    "wide",
  ),
];

function wordOf({ outcome, group, isShared, skipped }: Row): Word {
  if (outcome === "skipped") return { tone: "idle", word: `not asked: ${skipped}` };
  if (outcome === "error") return { tone: "bad", word: "failed" };
  if (group !== 0) return { tone: "warn", word: "differs" };
  return isShared ? { tone: "good", word: "same as most" } : { tone: "idle", word: "answered" };
}

function Detail({ row, usual }: { readonly row: Row; readonly usual: Row | null }) {
  if (row.truncated) return <p class="muted small">The answer is too long to be shown.</p>;
  if (row.outcome !== "answer")
    return <p class="muted small">{row.error?.message ?? row.skipped}</p>;
  if (usual === null || usual.group === row.group || usual.truncated)
    return <Json value={row.result} label={`Answer of ${row.provider}`} />;
  return (
    <DiffView
      before={jsonText(usual.result)}
      after={jsonText(row.result)}
      label={`How ${row.provider} differs from ${usual.provider}`}
    />
  );
}
