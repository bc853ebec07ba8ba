// The chains that are served, one row for each profile on it.

import { useApp } from "../../app/app.ts";
import { pathTo } from "../../app/router.ts";
import * as column from "../../components/columns.tsx";
import { Badge, Link } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { DASH, milliseconds, share } from "../../format/text.ts";
import { OUTCOMES, type Outcome } from "../../health/outcomes.ts";
import { type ChainCalls, shareOfEnds, sparkPath, total } from "../../health/series.ts";
import { type ProfileMetrics, type ProfileVerdict, stateCounts } from "../../health/states.ts";

/** A row: one profile on one chain. */
export interface ChainRow {
  readonly chain: string;
  readonly chainId: string;
  readonly name: string;
  readonly profile: ProfileMetrics;
  readonly verdict: ProfileVerdict;
  /** In the range of the page; null = not known. */
  readonly ended: ChainCalls | null;
}

/** The table of chains. */
export function ChainTable(props: { readonly rows: readonly ChainRow[]; readonly lead: string }) {
  const { router } = useApp();
  return (
    <TableCard
      {...props}
      title="Chains"
      name="chains"
      columns={COLUMNS}
      keyOf={({ profile, chain }) => `${profile.profile} ${chain}`}
      order="state"
      textOf={({ name, chain, chainId, profile, verdict }) =>
        `${name} ${chain} ${chainId} ${profile.profile} ${verdict.words}`
      }
      open={(row) => router.go(pathOf(row))}
      empty="No chain is configured"
    />
  );
}

function pathOf({ chain, profile }: ChainRow): string {
  return pathTo("chain", profile.profile, chain);
}

/** Problems with traffic first, then traffic, then problems without, then the rest. */
function rankOf({ verdict: { calls, tone } }: ChainRow): number {
  const isTroubled = tone === "warn" || tone === "bad";
  return (calls > 0 ? 0 : 2) + (isTroubled ? 0 : 1);
}

const COLUMNS: readonly Column<ChainRow>[] = [
  column.text("chain", "Chain", ({ name }) => name, {
    kind: "lead",
    render: (row) => <Link to={pathOf(row)}>{row.name}</Link>,
    note: ({ chain, chainId }) => `${chain}, ${chainId}`,
  }),
  column.text("profile", "Profile", ({ profile }) => profile.profile),
  column.text("state", "State", rankOf, {
    kind: "wide",
    render: ({ verdict }) => <Badge tone={verdict.tone}>{verdict.words}</Badge>,
  }),
  column.text("usable", "Providers", ({ verdict }) => verdict.usable, {
    render: ({ profile }) => stateCounts(profile.providers),
  }),
  column.number("calls", "Calls", ({ ended }) => total(ended?.calls ?? [])),
  column.of("spark", "Over time", ({ ended }) => <Spark values={ended?.calls ?? []} />),
  shareColumn("failed"),
  shareColumn("refused"),
  column.number("p95", "p95 ms", ({ ended }) => ended?.p95_ms, milliseconds),
  column.number("head", "Head block", ({ verdict }) => verdict.head),
];

/** The part of calls that ended so, in its colour. */
function shareColumn(outcome: Outcome): Column<ChainRow> {
  const { word, tone } = OUTCOMES[outcome];
  const read = ({ ended }: ChainRow) => shareOfEnds(ended?.outcomes, outcome);
  const render = (row: ChainRow) => {
    const part = read(row);
    return <span class={part === null || part === 0 ? "" : `${tone} toned`}>{share(part)}</span>;
  };
  return column.text(outcome, word, read, { kind: "number", render });
}

const SPARK = { width: 96, height: 20 } as const;

function Spark({ values }: { readonly values: ChainCalls["calls"] }) {
  const { width, height } = SPARK;
  const path = sparkPath(values, width, height);
  if (path === "") return DASH;
  return (
    <svg class="spark" viewBox={`0 -1 ${width} ${height + 2}`} {...SPARK} aria-hidden="true">
      <path d={path} />
    </svg>
  );
}
