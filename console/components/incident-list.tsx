// Incidents as a list: each with its cause, since when or how long, who noticed, and what can be
// done about it.

import { useState } from "preact/hooks";
import { ForOperator, useCall } from "../app/app.ts";
import { pathTo } from "../app/router.ts";
import { duration, plural, textList } from "../format/text.ts";
import { pollMsOf } from "../health/ranges.ts";
import type { History } from "../health/series.ts";
import { adviceOn, type Incident, incidentWord } from "../health/states.ts";
import { Card } from "./card.tsx";
import { Button } from "./controls.tsx";
import { Badge, Link, ProviderLink, Time } from "./inline.tsx";
import { Empty } from "./page-state.tsx";
import { CordonButton } from "./provider-actions.tsx";
import { useRange } from "./range-picker.tsx";

const MAX_INCIDENTS = 200;

/** Incidents of a chain or of a provider in the range of the page: those that `history` shows. */
export function useIncidents(
  of: { readonly profile?: string; readonly chain?: string; readonly provider?: string },
  history: History | null,
): readonly Incident[] {
  const { from, to } = useRange();
  const query = { ...of, from, to, limit: MAX_INCIDENTS };
  const known = useCall("GET /api/v1/incidents", { query }, pollMsOf({ range: "hour" }));
  const sinceMs = Date.parse(history?.from ?? "");
  return (known.data?.incidents ?? []).filter(
    ({ ended_at: end }) => end === null || !(Date.parse(end) < sinceMs),
  );
}

interface IncidentCardProps {
  readonly title?: string;
  readonly lead?: string;
  readonly incidents: readonly Incident[];
}

/** More are shown when they are asked for: the rest of the page matters as well. */
const SHOWN_AT_ONCE = 8;

const PAST = "What was wrong in this time, those that began last first.";

/** A card with incidents, of the range of the page unless it says otherwise. */
export function IncidentCard({ title = "Incidents", lead = PAST, incidents }: IncidentCardProps) {
  const [isWhole, setWhole] = useState(false);
  const shown = isWhole ? incidents : incidents.slice(0, SHOWN_AT_ONCE);
  return (
    <Card {...{ title, lead }} flush>
      {incidents.length === 0 ? (
        <Empty title="Nothing was wrong">What goes wrong for half a minute appears here.</Empty>
      ) : (
        <ol class="changes incidents">
          {shown.map((incident) => (
            <IncidentItem key={incident.id} {...incident} />
          ))}
        </ol>
      )}
      {shown.length === incidents.length ? null : (
        <p class="card-body">
          <Button press={() => setWhole(true)}>Show all {incidents.length}</Button>
        </p>
      )}
    </Card>
  );
}

function IncidentItem(incident: Incident) {
  const { profile, chain, provider, words, started_at: start } = incident;
  const { tone, word } = incidentWord(incident);
  return (
    <li>
      <Badge tone={tone}>{word}</Badge>
      <span class="wrap-anywhere">
        {provider === null ? null : (
          <>
            <ProviderLink id={provider} /> on{" "}
          </>
        )}
        <Link to={pathTo("chain", profile, chain)}>{chain}</Link>
        {`: ${textList([words, noticedText(incident)])}. `}
        <span class="muted">
          <Outlook {...incident} />
        </span>
      </span>
      <span class="muted small">
        <Time at={start} />
      </span>
      {provider === null || incident.ended_at !== null ? null : (
        <ForOperator>
          <CordonButton provider={provider} place={{ profile, chain }} />
        </ForOperator>
      )}
    </li>
  );
}

/** How an incident ended, or what can be done about it. */
function Outlook(incident: Incident) {
  const { ended_at: end, good_since: goodSince, duration_s: seconds } = incident;
  if (end !== null) return <>It took {duration(seconds * 1_000)}.</>;
  if (goodSince === null) return <>{adviceOn(incident)}.</>;
  return (
    <>
      Good again since <Time at={goodSince} />.
    </>
  );
}

/** How much went wrong, and who noticed. */
function noticedText({ failed, failed_calls: calls, users }: Incident): string {
  const noticed = `${plural(users, "user")} noticed (${plural(calls, "failed call")})`;
  return textList([
    failed > 0 && plural(failed, "failed attempt"),
    calls > 0 ? noticed : "no user noticed",
  ]);
}
