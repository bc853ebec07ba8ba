// Incidents as a list: each with its cause, since when or how long, who noticed, and what can be
// done about it.

import { useState } from "preact/hooks";
import { pathTo, queryText } from "../app/router.ts";
import { duration, plural, textList } from "../format/text.ts";
import { adviceOn, type Incident, incidentWord } from "../health/states.ts";
import { Card } from "./card.tsx";
import { Button } from "./controls.tsx";
import { Badge, Link, Time } from "./inline.tsx";
import { Empty } from "./page-state.tsx";

interface IncidentCardProps {
  readonly title: string;
  readonly lead: string;
  readonly incidents: readonly Incident[];
}

/** More are shown when they are asked for: the rest of the page matters as well. */
const SHOWN_AT_ONCE = 8;

/** A card with incidents. */
export function IncidentCard({ title, lead, incidents }: IncidentCardProps) {
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
  const place = `${pathTo("chain", profile, chain)}${queryText({ provider: provider ?? "" })}`;
  return (
    <li>
      <Badge tone={tone}>{word}</Badge>
      <span class="wrap-anywhere">
        <Link to={place}>{provider === null ? chain : `${provider} on ${chain}`}</Link>
        {`: ${textList([words, noticedText(incident)])}. `}
        <span class="muted">
          <Outlook {...incident} />
        </span>
      </span>
      <span class="muted small">
        <Time at={start} />
      </span>
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
