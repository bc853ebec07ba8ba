// A provider wherever it stands: how it is, what was wrong, what is known of its methods and
// limits, and what the operator can do with it.

import { readChains } from "../../api/chains.ts";
import type { Client, Result } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import { ForOperator, type PageProps, useApp, useCall, useQuery } from "../../app/app.ts";
import { Card, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Select } from "../../components/controls.tsx";
import { IncidentCard, useIncidents } from "../../components/incident-list.tsx";
import { Clock, Link, Name, StateBadge, Time } from "../../components/inline.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { ProviderActions } from "../../components/provider-actions.tsx";
import { ProviderGraphs } from "../../components/provider-graphs.tsx";
import { METHOD_COLUMNS, type MethodRow, ProviderTable } from "../../components/provider-table.tsx";
import { MAX_POINTS, RangePicker, useRange } from "../../components/range-picker.tsx";
import { TableCard } from "../../components/table.tsx";
import { count, plural, textList } from "../../format/text.ts";
import { pollMsOf } from "../../health/ranges.ts";
import { type ProviderPlace, stateWord, worstPlaces } from "../../health/states.ts";

const POLL_MS = 3_000;

/** The page of a provider. */
export function ProviderPage({ params }: PageProps) {
  const { provider = "" } = params;
  const { client } = useApp();
  const places = useResource(`provider ${provider}`, POLL_MS, () => readPlaces(client, provider));
  return (
    <Loaded resource={places}>
      {(found) => {
        const [first, ...others] = worstPlaces(found);
        if (first === undefined) return <NoProvider name={provider} />;
        return <ProviderView places={[first, ...others]} changed={places.reload} />;
      }}
    </Loaded>
  );
}

function NoProvider({ name }: { readonly name: string }) {
  return (
    <>
      <PageHead title={<Name text={name} />} />
      <Card flush>
        <Empty title="No provider that is configured now has this name">
          <Link to="/">The overview lists the chains</Link>
        </Empty>
      </Card>
    </>
  );
}

interface ViewProps {
  /** The worst first. */
  readonly places: readonly [ProviderPlace, ...ProviderPlace[]];
  /** Reads the page again. */
  readonly changed: () => void;
}

function ProviderView({ places, changed }: ViewProps) {
  const [{ provider }] = places;
  const range = useRange();
  const [chosen, choose] = useQuery("place");
  const place = places.find((each) => placeName(each) === chosen) ?? places[0];
  const { profile, chain } = place;
  const query = { ...range, profile, chain, provider: provider.id, points: MAX_POINTS };
  const history = useCall("GET /api/v1/history", { query }, pollMsOf(range));
  const incidents = useIncidents({ provider: provider.id }, history.data);
  const here = incidents.filter((each) => each.profile === profile && each.chain === chain);
  return (
    <>
      <PageHead
        title={
          <span class="headline">
            <Name text={provider.name} /> <StateBadge {...stateWord(provider)} />
          </span>
        }
        lead={<StateSentence places={places} />}
      >
        <RangePicker history={history.data} />
      </PageHead>
      <ForOperator>
        <ProviderActions places={places} isEverywhere changed={changed} />
      </ForOperator>
      <IncidentCard incidents={incidents} />
      <ProviderTable title="Where it is used" places={places} by="place" changed={changed} />
      <HistoryTable places={places} />
      <MethodsTable places={places} />
      <div class="page-head">
        <h2>Over time</h2>
        {places.length === 1 ? null : (
          <Select
            label="Chain"
            hidesName
            value={placeName(place)}
            options={places.map((each) => ({
              value: placeName(each),
              label: `${each.chain}, profile ${each.profile}`,
            }))}
            choose={choose}
          />
        )}
      </div>
      <ProviderGraphs resource={history} chosen={provider.id} incidents={here} />
    </>
  );
}

function placeName({ profile, chain }: ProviderPlace): string {
  return `${profile}/${chain}`;
}

const MAX_NAMED = 3;

/** How it is where it is worst, since when and why. */
function StateSentence({ places }: Pick<ViewProps, "places">) {
  const [{ provider }] = places;
  const { state, state_since: since, cause, cordon } = provider;
  const same = places.filter((each) => each.provider.state === state);
  const chains = [...new Set(same.map(({ chain }) => chain))];
  const named = chains.slice(0, MAX_NAMED);
  const more = chains.length - named.length;
  const others = places.length - same.length;
  const { reason = null, until = null } = cordon ?? {};
  return (
    <span class="wrap-anywhere">
      {stateWord(provider).word} on {textList([...named, more > 0 && `${more} more`])}
      {since === null ? null : (
        <>
          {" "}
          since <Clock at={since} />
        </>
      )}
      {until === null ? null : (
        <>
          {" "}
          until <Clock at={until} />
        </>
      )}
      {cause === null ? "" : `: ${cause}`}
      {reason === null ? null : (
        <>
          , <Name text={reason} />
        </>
      )}
      .{others === 0 ? "" : ` ${plural(others, "place")} in another state.`}
      {provider.certificate_until == null ? null : (
        <>
          {" "}
          Its certificate ends <Time at={provider.certificate_until} />.
        </>
      )}
    </span>
  );
}

/** How far back it has what calls read, and where that is known from. */
function HistoryTable({ places }: Pick<ViewProps, "places">) {
  const rows = places.flatMap((place) =>
    place.provider.capabilities.map((capability) => ({ ...capability, place })),
  );
  type Row = (typeof rows)[number];
  return (
    <TableCard
      title="How far back"
      lead="What it has of old blocks. Of what is not listed nothing is known."
      name="history"
      columns={[
        column.text<Row>("resource", "What", ({ resource }) => resource),
        column.text<Row>("chain", "Chain", ({ place }) => place.chain),
        column.text<Row>("oldest", "Oldest block", oldestText, {
          kind: "number",
          value: ({ oldest_block: oldest }) => oldest,
        }),
        column.number<Row>("window", "Blocks kept", ({ window_blocks: window }) => window),
        column.text<Row>("source", "Known from", ({ source }) => KNOWN_FROM[source]),
      ]}
      rows={rows}
      keyOf={({ place, resource }) => `${place.profile} ${place.chain} ${resource}`}
      textOf={({ place, resource }) => `${place.chain} ${resource}`}
      order="resource"
      empty="Nothing is known of old blocks"
    />
  );
}

type Capability = ProviderPlace["provider"]["capabilities"][number];

function oldestText({ disabled, oldest_block: oldest }: Capability): string {
  return disabled ? "none" : count(oldest);
}

const KNOWN_FROM: Readonly<Record<Capability["source"], string>> = {
  learned: "its refusals",
  declared: "the configuration",
  reported: "the node",
  assumed: "an assumption",
};

interface PlaceMethod extends MethodRow {
  readonly place: ProviderPlace;
  readonly transport: string;
}

/** Latency by method. */
function MethodsTable({ places }: Pick<ViewProps, "places">) {
  const rows = places.flatMap((place) =>
    place.provider.transports.flatMap(({ transport, methods }) =>
      methods.map((each): PlaceMethod => ({ ...each, place, transport })),
    ),
  );
  return (
    <TableCard
      title="Latency by method"
      lead="Averages of the last 10 minutes"
      name="latency"
      columns={[
        ...METHOD_COLUMNS.slice(0, 1),
        column.text<PlaceMethod>("chain", "Chain", ({ place }) => place.chain),
        ...METHOD_COLUMNS.slice(1),
      ]}
      rows={rows}
      keyOf={({ place, method, transport }) =>
        `${place.profile} ${place.chain} ${transport} ${method}`
      }
      textOf={({ place, method }) => `${place.chain} ${method}`}
      order="-calls"
      empty="No calls in the last 10 minutes"
    />
  );
}

/** Where a provider stands; the first failure is the failure of the whole. */
async function readPlaces(client: Client, id: string): Promise<Result<readonly ProviderPlace[]>> {
  const chains = await readChains(client);
  if (chains.kind === "failed") return chains;
  const body = chains.body.flatMap(({ chain_name: chain, profiles }) =>
    profiles.flatMap(({ profile, providers }) =>
      providers
        .filter((provider) => provider.id === id)
        .map((provider) => ({ profile, chain, provider })),
    ),
  );
  return { kind: "ok", body };
}
