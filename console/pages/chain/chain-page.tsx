// A profile on a chain: its providers, its subscriptions, and the addresses to call it.

import { SERVICE_URL } from "../../api/client.ts";
import { ForOperator, type PageProps, useCall } from "../../app/app.ts";
import { queryText } from "../../app/router.ts";
import { Card, figures, inUnit, PageHead } from "../../components/card.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { Badge, Link, Name } from "../../components/inline.tsx";
import { Empty, isMissing, Loaded } from "../../components/page-state.tsx";
import { ProviderTable } from "../../components/provider-table.tsx";
import { compact, count, visible } from "../../format/text.ts";
import { type ChainMetrics, type ProfileMetrics, summarise } from "../../health/states.ts";
import { ChainHistory } from "./chain-history.tsx";
import { SubscriptionsCard } from "./subscriptions-card.tsx";

const POLL_MS = 1_000;

/** The page of a chain. */
export function ChainPage({ params }: PageProps) {
  const { profile: slug = "", chain = "" } = params;
  const metrics = useCall("GET /api/metrics/{chain}", { params: { chain } }, POLL_MS);
  if (isMissing(metrics.failure))
    return (
      <NotServed chain={chain} title="No chain has this name">
        The overview lists the chains
      </NotServed>
    );
  return (
    <Loaded resource={metrics}>
      {(data) => {
        const profile = data.profiles.find((each) => each.profile === slug);
        if (profile === undefined)
          return (
            <NotServed chain={data.name} title={`Profile ${slug} does not serve this chain`}>
              The overview lists the profiles of each chain
            </NotServed>
          );
        return <ChainView chain={data} profile={profile} changed={metrics.reload} />;
      }}
    </Loaded>
  );
}

interface NotServedProps {
  readonly chain: string;
  readonly title: string;
  readonly children: string;
}

function NotServed({ chain, title, children }: NotServedProps) {
  return (
    <>
      <PageHead title={<Name text={chain} />} />
      <Card flush>
        <Empty title={visible(title)}>
          <Link to="/">{children}</Link>
        </Empty>
      </Card>
    </>
  );
}

interface ChainViewProps {
  readonly chain: ChainMetrics;
  readonly profile: ProfileMetrics;
  /** Reads the page again. */
  readonly changed: () => void;
}

function ChainView({ chain, profile, changed }: ChainViewProps) {
  const query = queryText({ chain: chain.chain_name, profile: profile.profile });
  const verdict = summarise(profile);
  return (
    <>
      <PageHead
        title={
          <span class="headline">
            <Name text={chain.name} /> <Badge tone={verdict.tone}>{verdict.words}</Badge>
          </span>
        }
        lead={`Profile ${profile.profile}, chain id ${chain.chain_id}`}
      >
        <ForOperator>
          <Link class="button" to={`/requests${query}`}>
            Requests
          </Link>
          <Link class="button" to={`/tester${query}`}>
            Compare providers
          </Link>
        </ForOperator>
      </PageHead>
      {figures([
        ["Head block", count(profile.head_block)],
        ["Providers usable", inUnit(count(verdict.usable), `of ${count(verdict.providers)}`)],
        ["Calls to providers", compact(profile.calls), "since the start"],
        ["Subscribers", count(profile.subscriptions.subscribers)],
      ])}
      <ProviderTable
        title="Providers"
        places={profile.providers.map((provider) => ({
          ...{ profile: profile.profile, chain: chain.chain_name },
          provider,
        }))}
        by="provider"
        changed={changed}
      />
      <ChainHistory profile={profile.profile} chain={chain.chain_name} />
      <SubscriptionsCard {...profile.subscriptions} />
      <Addresses profile={profile.profile} chain={chain.chain_name} />
    </>
  );
}

/** The addresses of a profile on a chain, and a first call. */
function Addresses({ profile, chain }: Readonly<Record<"profile" | "chain", string>>) {
  const folder = profile === "public" ? "rpc/" : `rpc/profile/${encodeURIComponent(profile)}/`;
  const path = `${folder}${encodeURIComponent(chain)}`;
  const address = `${SERVICE_URL.href}${path}`;
  const socket = `${SERVICE_URL.href.replace(/^http/, "ws")}ws/${path}`;
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';
  const command = `curl -s ${address} -H 'content-type: application/json' -d '${body}'`;
  return (
    <Card title="Call it">
      <div class="stack">
        <Snippet text={address} what="RPC URL" />
        <Snippet text={socket} what="WebSocket URL" />
        <Snippet text={command} what="curl command" />
      </div>
    </Card>
  );
}
