// A profile on a chain: its providers, its subscriptions, and the addresses to call it.
import type { JSX } from "preact";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import type { PageProps } from "../../app/page.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { compact, count } from "../../format/numbers.ts";
import { type ChainMetrics, judgeProfile, type ProfileMetrics } from "../../health/judge.ts";
import { Addresses } from "./addresses.tsx";
import { ChainHistory } from "./chain-history.tsx";
import { ProviderTable } from "./provider-table.tsx";
import { SubscriptionsCard } from "./subscriptions-card.tsx";

const POLL_MS = 1_000;

/** The page of a chain. */
export function ChainPage({ params }: PageProps): JSX.Element {
  const { client } = useApp();
  const { profile: slug = "", chain = "" } = params;
  const metrics = useResource(`chain ${chain}`, POLL_MS, (signal) =>
    client.call("GET /api/metrics/{chain}", { params: { chain } }, signal),
  );
  return (
    <Loaded resource={metrics}>
      {(data) => {
        const profile = data.profiles.find((each) => each.profile === slug);
        if (profile === undefined)
          return <Empty title="This profile does not serve this chain (any more)" />;
        return <ChainView chain={data} profile={profile} changed={metrics.reload} />;
      }}
    </Loaded>
  );
}

interface ChainViewProps {
  readonly chain: ChainMetrics;
  readonly profile: ProfileMetrics;
  /** Reads the page again. */
  readonly changed: () => void;
}

function ChainView({ chain, profile, changed }: ChainViewProps): JSX.Element {
  const verdict = judgeProfile(profile);
  return (
    <>
      <PageHead
        title={
          <span class="headline">
            {chain.name} <Badge tone={verdict.tone}>{verdict.words}</Badge>
          </span>
        }
        lead={`Profile ${profile.profile}, chain id ${chain.chain_id}`}
      />
      <Figures>
        <Figure label="Head block" value={count(profile.head_block)} />
        <Figure
          label="Providers usable"
          value={count(verdict.usable)}
          unit={`of ${count(verdict.providers)}`}
        />
        <Figure label="Calls to providers" value={compact(profile.calls)} note="since the start" />
        <Figure label="Subscribers" value={count(profile.subscriptions.subscribers)} />
      </Figures>
      <Card
        title="Providers"
        lead="A dash means that nothing is known. Percentiles are of the latest few thousand answers."
        flush
      >
        <ProviderTable
          profile={profile.profile}
          chain={chain.chain_name}
          providers={profile.providers}
          changed={changed}
        />
      </Card>
      <ChainHistory profile={profile.profile} chain={chain.chain_name} />
      <SubscriptionsCard subscriptions={profile.subscriptions} />
      <Addresses profile={profile.profile} chain={chain.chain_name} />
    </>
  );
}
