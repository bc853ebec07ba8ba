// What changed lately, as the service remembers it and as it happens: incidents, cordons,
// configuration, nodes. For the operator.

import { useEffect, useState } from "preact/hooks";
import { SERVICE_URL } from "../../api/client.ts";
import { watchFeed } from "../../api/feed.ts";
import { useApp } from "../../app/app.ts";
import { pathTo } from "../../app/router.ts";
import { Card } from "../../components/card.tsx";
import { Dot, Link, Time } from "../../components/inline.tsx";
import { Empty, failureText } from "../../components/page-state.tsx";
import { type Change, changeOf, changesIn, withChange } from "./change-text.ts";

/** No call takes that long: of calls nothing is sent, of everything else all. */
const NO_CALLS = "api/v1/operator/events?min_ms=3600000";
const MAX_SHOWN = 30;

/** The list of changes. */
export function Changes() {
  const { client } = useApp();
  const [changes, setChanges] = useState<readonly Change[]>([]);
  const [failure, setFailure] = useState<string | null>(null);
  useEffect(() => {
    const add = (more: readonly Change[]): void =>
      setChanges((before) =>
        more.reduce((all, change) => withChange(all, change, MAX_SHOWN), before),
      );
    const leave = watchFeed(new URL(NO_CALLS, SERVICE_URL), {
      state: () => {},
      event: (event) => {
        const change = changeOf(event);
        if (change !== null) add([change]);
      },
    });
    // What happened before, beside what happens from now on.
    const query = { limit: MAX_SHOWN };
    void client.call("GET /api/v1/operator/changes", { query }).then((result) => {
      if (result.kind === "ok") return add(changesIn(result.body));
      setFailure(failureText(result.failure));
    });
    return leave;
  }, [client]);
  return (
    <Card
      title="What changed"
      lead={
        failure === null
          ? `The latest ${MAX_SHOWN}; providers are judged every 10 s.`
          : `Since this page was opened; what was before cannot be told: ${failure}`
      }
      flush
    >
      {changes.length === 0 ? (
        <Empty title="Nothing has changed">
          Incidents, cordons, reloads and nodes appear here.
        </Empty>
      ) : (
        <ol class="changes">
          {changes.map((change) => (
            <ChangeItem key={change.id} change={change} />
          ))}
        </ol>
      )}
    </Card>
  );
}

function ChangeItem({ change }: { readonly change: Change }) {
  const { at, tone, text, profile, chain } = change;
  return (
    <li>
      <Dot tone={tone} />
      <span class="wrap-anywhere">
        {text}
        {profile === null || chain === null ? null : (
          <>
            {", "}
            <Link to={pathTo("chain", profile, chain)}>{chain}</Link>
          </>
        )}
      </span>
      <span class="muted small">
        <Time at={at} />
      </span>
    </li>
  );
}
