// The chains that are served, one row for each profile on it.

import { useApp } from "../../app/app.ts";
import { pathTo } from "../../app/router.ts";
import * as column from "../../components/columns.tsx";
import { Badge, Link } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { count } from "../../format/text.ts";
import { type ProfileMetrics, type ProfileVerdict, stateWord } from "../../health/states.ts";

/** A row: one profile on one chain. */
export interface ChainRow {
  readonly chain: string;
  readonly chainId: string;
  readonly name: string;
  readonly profile: ProfileMetrics;
  readonly verdict: ProfileVerdict;
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
    render: (row) => <Ticks {...row} />,
    note: ({ verdict }) => `${count(verdict.usable)} of ${count(verdict.providers)} usable`,
  }),
  column.number("head", "Head block", ({ verdict }) => verdict.head),
  {
    ...column.number<ChainRow>("calls", "Calls", ({ verdict }) => verdict.calls),
    title: "Calls to its providers since the start",
  },
];

function Ticks({ profile }: ChainRow) {
  return (
    <span class="ticks" aria-hidden="true">
      {profile.providers.map((provider) => (
        <i key={provider.id} class={stateWord(provider).tone} />
      ))}
    </span>
  );
}
