// The live feed of decisions: every call at its end, with filters that stand in the address.

import { useState } from "preact/hooks";
import type { FeedState } from "../../api/feed.ts";
import { type FeedView, useFeed } from "../../api/use-feed.ts";
import { useApp, useCall, useStore, useTimed } from "../../app/app.ts";
import { queryText } from "../../app/router.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button, Notice } from "../../components/controls.tsx";
import { Icon } from "../../components/icons.tsx";
import { StateBadge, type Word } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { duration, rate } from "../../format/text.ts";
import { CallTable } from "./call-table.tsx";
import { Filters, filtersIn } from "./filters.tsx";

const LATEST = 100;
const LEAD = "Calls as they end, and why each went where it went.";

/** The page of the feed. */
export function RequestsPage() {
  const { router, session } = useApp();
  const filters = filtersIn(useStore(router.place).query);
  const query = { ...filters, limit: LATEST };
  const latest = useCall("GET /api/v1/operator/decisions", { query });
  const node = useStore(session.state)?.instance.node ?? null;
  const [paused, setPaused] = useState(false);
  const feed = useFeed(queryText(filters), latest.data?.decisions, paused);
  return (
    <>
      <PageHead title="Requests" lead={`${LEAD}${nodeText(node)}`}>
        <FeedBadge feed={feed} paused={paused} />
        <Button pressed={paused} press={() => setPaused(!paused)}>
          <Icon name={paused ? "play" : "pause"} />
          {paused ? "Resume" : "Pause"}
        </Button>
      </PageHead>
      <Card flush>
        <Filters />
        <Notice tone="warn">{feed.gap}</Notice>
        <Loaded resource={latest}>
          {() => <CallTable calls={feed.calls} open={({ id }) => router.go(`/requests/${id}`)} />}
        </Loaded>
      </Card>
    </>
  );
}

/** Each node keeps what it decided itself. */
function nodeText(node: string | null): string {
  return node === null ? "" : ` Those of node ${node}, which answers; others have their own.`;
}

function FeedBadge({ feed, paused }: { readonly feed: FeedView; readonly paused: boolean }) {
  const { clock } = useApp();
  const { state, callsPerSecond } = feed;
  const wait = useTimed((nowMs) =>
    state.kind === "waiting" ? duration(state.atMs - (nowMs - clock.get().offsetMs)) : "",
  );
  return (
    <span role="status">
      <StateBadge {...wordOf(state, wait, paused)} />
      {callsPerSecond === null ? null : (
        <span class="muted small"> {rate(callsPerSecond)} calls a second</span>
      )}
    </span>
  );
}

function wordOf(state: FeedState, wait: string, paused: boolean): Word {
  switch (state.kind) {
    case "connecting":
      return { tone: "idle", word: "Connecting" };
    case "live":
      return paused ? { tone: "idle", word: "Paused" } : { tone: "good", word: "Live" };
    case "waiting":
      return { tone: "warn", word: `Cut off, connecting in ${wait}` };
    case "ended":
      return { tone: "bad", word: state.message || "Ended" };
  }
}
