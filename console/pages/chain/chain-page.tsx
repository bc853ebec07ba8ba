// A profile on a chain: its providers, its subscriptions, and the addresses to call it.
import type { JSX } from "preact";
import { useResource } from "../../api/resource.ts";
import { queryText } from "../../app/address.ts";
import { useApp, useStore } from "../../app/app.ts";
import type { PageProps } from "../../app/page.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { Link } from "../../components/link.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { compact, count } from "../../format/numbers.ts";
import { type ChainMetrics, judgeProfile, type ProfileMetrics } from "../../health/judge.ts";
import { Addresses } from "./addresses.tsx";
import { ChainHistory } from "./chain-history.tsx";
import { ProviderTable } from "./provider-table.tsx";
import { SubscriptionsCard } from "./subscriptions-card.tsx";

const NOT_FOUND = 404;
const POLL_MS = 1_000;

/** The page of a chain. */
export function ChainPage({ params }: PageProps): JSX.Element {
  const { client } = useApp();
  const { profile: slug = "", chain = "" } = params;
  const metrics = useResource(`chain ${chain}`, POLL_MS, (signal) =>
    client.call("GET /api/metrics/{chain}", { params: { chain } }, signal),
  );
  const { failure } = metrics;
  if (failure?.kind === "refused" && failure.status === NOT_FOUND)
    return (
      <Empty title="No chain has this name">
        <Link to="/">The overview lists the chains</Link>
      </Empty>
    );
  return (
    <Loaded resource={metrics}>
      {(data) => {
        const profile = data.profiles.find((each) => each.profile === slug);
        if (profile === undefined)
          return (
            <Empty title="This profile does not serve this chain">
              <Link to="/">The overview lists the profiles of each chain</Link>
            </Empty>
          );
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
  const { session } = useApp();
  const isOperator = useStore(session.state)?.role === "operator";
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
      >
        {isOperator ? <Ways chain={chain.chain_name} profile={profile.profile} /> : null}
      </PageHead>
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
        lead={
          (isOperator
            ? "Open a provider to test or cordon it, and to see its methods. "
            : "Open a provider to see its methods. ") +
          "A dash means unknown. Percentiles are of the latest few thousand answers."
        }
        flush
      >
        <ProviderTable profile={profile} chain={chain.chain_name} changed={changed} />
      </Card>
      <ChainHistory profile={profile.profile} chain={chain.chain_name} />
      <SubscriptionsCard subscriptions={profile.subscriptions} />
      <Addresses profile={profile.profile} chain={chain.chain_name} />
    </>
  );
}

/** Where an operator goes from here. */
function Ways({
  chain,
  profile,
}: {
  readonly chain: string;
  readonly profile: string;
}): JSX.Element {
  const query = queryText({ chain, profile });
  return (
    <>
      <Link class="button" to={`/requests${query}`}>
        Requests
      </Link>
      <Link class="button" to={`/tester${query}`}>
        Compare providers
      </Link>
    </>
  );
}
