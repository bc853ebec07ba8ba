// Incidents as a list: each with its cause, since when or how long, who noticed, and what can be
// done about it.

import { pathTo, queryText } from "../app/router.ts";
import { duration, plural, textList } from "../format/text.ts";
import { adviceOn, type Incident, incidentWord } from "../health/states.ts";
import { Card } from "./card.tsx";
import { Badge, Link, Time } from "./inline.tsx";
import { Empty } from "./page-state.tsx";

interface IncidentCardProps {
  readonly title: string;
  readonly lead: string;
  readonly incidents: readonly Incident[];
}

/** A card with incidents. */
export function IncidentCard({ title, lead, incidents }: IncidentCardProps) {
  return (
    <Card {...{ title, lead }} flush>
      {incidents.length === 0 ? (
        <Empty title="Nothing was wrong">What goes wrong for half a minute appears here.</Empty>
      ) : (
        <ol class="changes incidents">
          {incidents.map((incident) => (
            <IncidentItem key={incident.id} {...incident} />
          ))}
        </ol>
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
