// The same call asked of every provider, side by side, for the operator: latency, size, which
// answers are equal, and where one differs from what most say.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Failure } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { numberColumn } from "../../components/columns.ts";
import { DiffView } from "../../components/diff-view.tsx";
import { failureText } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { bytes, DASH, milliseconds } from "../../format/numbers.ts";
import { Json } from "./answer-card.tsx";
import { type ComparedResult, groupsOf } from "./compare.ts";
import { jsonText } from "./json-text.ts";
import type { TestCall } from "./rpc-call.ts";

/** An answer to compare, as the API tells it. */
interface CompareResult extends ComparedResult {
  readonly alias: string;
  readonly transport: string;
  readonly skipped: string | null;
  readonly latency_ms: number | null;
  readonly bytes: number | null;
  readonly result: unknown;
  readonly truncated: boolean;
  readonly error: { readonly category: string; readonly message: string } | null;
}

interface Comparison {
  readonly method: string;
  readonly profile: string;
  readonly results: readonly CompareResult[];
}

/** The card. */
export function CompareCard({ call }: { readonly call: TestCall }): JSX.Element {
  const { client } = useApp();
  const [comparison, setComparison] = useState<Comparison | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const profiles = useProfiles(call.chain);
  const [chosen, setChosen] = useState("");
  const profile = chosen === "" ? (call.profile ?? profiles[0] ?? "") : chosen;
  const compare = (): void => {
    setBusy(true);
    setFailure(null);
    const { chain, method, params } = call;
    const body = { profile, chain, method, params };
    void client.request<Comparison>("POST", "/api/v1/operator/compare", body).then((result) => {
      setBusy(false);
      if (result.kind === "ok") setComparison(result.body);
      else setFailure(result.failure);
    });
  };
  return (
    <Card
      title="Compare providers"
      lead="The call above, asked of every provider of a profile; reads only, ten times a minute"
      actions={
        <>
          <ProfileSelect {...{ profiles, profile }} choose={setChosen} />
          <button type="button" class="button" disabled={busy || profile === ""} onClick={compare}>
            {busy ? "Asking all" : "Compare"}
          </button>
        </>
      }
      flush
    >
      {failure === null ? null : (
        <p class="notice bad" role="alert">
          {failureText(failure)}
        </p>
      )}
      {comparison === null ? null : <Results comparison={comparison} />}
    </Card>
  );
}

/** The profiles that serve a chain, by their names for operators. */
function useProfiles(chain: string): readonly string[] {
  const { client } = useApp();
  const metrics = useResource(`profiles of ${chain}`, 0, (signal) =>
    client.call("GET /api/metrics/{chain}", { params: { chain } }, signal),
  );
  return metrics.data?.profiles.map(({ profile }) => profile) ?? [];
}

interface ProfileSelectProps {
  readonly profiles: readonly string[];
  readonly profile: string;
  readonly choose: (profile: string) => void;
}

function ProfileSelect({ profiles, profile, choose }: ProfileSelectProps): JSX.Element {
  return (
    <select
      class="input"
      aria-label="Profile to compare"
      value={profile}
      onChange={(event) => choose(event.currentTarget.value)}
    >
      {profiles.map((slug) => (
        <option key={slug} value={slug}>
          {slug}
        </option>
      ))}
    </select>
  );
}

/** A result with the group of equal ones that it is in. */
type Row = CompareResult & {
  readonly group: number | null;
  /** Whether another provider gave the same answer. */
  readonly isShared: boolean;
};

function Results({ comparison }: { readonly comparison: Comparison }): JSX.Element {
  const [opened, setOpened] = useState<string | null>(null);
  const { results } = comparison;
  const groups = groupsOf(results);
  const rows = results.map((result, at): Row => {
    const group = groups[at] ?? null;
    return { ...result, group, isShared: groups.filter((other) => other === group).length > 1 };
  });
  const usual = rows.find(({ group }) => group === 0) ?? null;
  const others = new Set(groups.filter((group) => group !== null && group > 0)).size;
  return (
    <>
      <p
        class={`notice ${others === 0 && usual?.isShared === true ? "good" : "warn"}`}
        role="status"
      >
        {usual === null && "No provider answered."}
        {usual !== null && others === 0 && usual.isShared && "Every answer is the same."}
        {usual !== null && others === 0 && !usual.isShared && "Only one provider answered."}
        {others > 0 && `${others + 1} different answers. Open a row to see what differs.`}
      </p>
      <Table
        name="compare"
        caption="Answers by provider"
        columns={COLUMNS}
        rows={rows}
        keyOf={keyOf}
        open={(row) => setOpened(opened === keyOf(row) ? null : keyOf(row))}
        detail={(row) => (opened === keyOf(row) ? <Detail row={row} usual={usual} /> : null)}
      />
    </>
  );
}

function keyOf({ provider, transport }: Row): string {
  return `${provider} ${transport}`;
}

const COLUMNS: readonly Column<Row>[] = [
  {
    id: "provider",
    label: "Provider",
    kind: "lead",
    value: (row) => row.provider,
    render: (row) => (
      <>
        <bdi>{row.provider}</bdi> <span class="muted small">{row.transport}</span>
      </>
    ),
  },
  { id: "outcome", label: "Answer", value: (row) => row.group, render: outcomeOf },
  numberColumn("latency", "Latency, ms", (row) => row.latency_ms, milliseconds),
  numberColumn("bytes", "Size", (row) => row.bytes, bytes),
  {
    id: "error",
    label: "Error",
    kind: "wide",
    render: (row) => (row.error === null ? DASH : `${row.error.category}: ${row.error.message}`),
  },
];

function outcomeOf({ outcome, group, isShared, skipped }: Row): JSX.Element {
  if (outcome === "skipped") return <Badge tone="idle">not asked: {skipped}</Badge>;
  if (outcome === "error") return <Badge tone="bad">error</Badge>;
  if (group === 0 && !isShared) return <Badge tone="idle">compared with</Badge>;
  if (group === 0) return <Badge tone="good">same as most</Badge>;
  return <Badge tone="warn">differs</Badge>;
}

function Detail({ row, usual }: { readonly row: Row; readonly usual: Row | null }): JSX.Element {
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
