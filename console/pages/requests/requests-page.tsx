// The live feed of decisions: every call at its end, with filters that stand in the address.

import { useMemo, useState } from "preact/hooks";
import type { FeedState } from "../../api/feed.ts";
import type { Resource } from "../../api/resource.ts";
import { type CallEvent, type FeedView, useFeed } from "../../api/use-feed.ts";
import { useApp, useCall, useStore, useTimed } from "../../app/app.ts";
import { queryText } from "../../app/router.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button, Notice } from "../../components/controls.tsx";
import { Icon } from "../../components/icons.tsx";
import { StateBadge, type Word } from "../../components/inline.tsx";
import { Empty, Failed, isForbidden, Loading } from "../../components/page-state.tsx";
import { duration, rate } from "../../format/text.ts";
import { CallTable } from "./call-table.tsx";
import { Filters, filtersIn } from "./filters.tsx";

const LATEST = 100;
const LEAD = "Calls as they end, and why each went where it went.";

type Latest = { readonly decisions: readonly CallEvent[] };

/** The page of the feed. */
export function RequestsPage() {
  const { query } = useStore(useApp().router.place);
  const filters = filtersIn(query);
  const search = queryText(filters);
  const latest = useCall("GET /api/v1/operator/decisions", {
    query: { ...filters, limit: LATEST },
  });
  if (latest.failure !== null && isForbidden(latest.failure))
    return (
      <>
        <PageHead title="Requests" />
        <Card flush>
          <Failed failure={latest.failure} />
        </Card>
      </>
    );
  return <Feed search={search} latest={latest} />;
}

interface FeedProps {
  readonly search: string;
  readonly latest: Resource<Latest>;
}

function Feed({ search, latest }: FeedProps) {
  const { router, session } = useApp();
  const node = useStore(session.state)?.instance.node ?? null;
  const [paused, setPaused] = useState(false);
  const first = useMemo(() => latest.data?.decisions ?? [], [latest.data]);
  const feed = useFeed(search, first, paused);
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
        {latest.failure === null ? null : <Failed failure={latest.failure} retry={latest.reload} />}
        <Calls feed={feed} latest={latest} open={({ id }) => router.go(`/requests/${id}`)} />
      </Card>
    </>
  );
}

/** Each node keeps what it decided itself. */
function nodeText(node: string | null): string {
  return node === null ? "" : ` Those of node ${node}, which answers; others have their own.`;
}

interface CallsProps {
  readonly feed: FeedView;
  readonly latest: Resource<Latest>;
  readonly open: (call: CallEvent) => void;
}

function Calls({ feed, latest, open }: CallsProps) {
  if (feed.calls.length > 0) return <CallTable calls={feed.calls} open={open} />;
  if (latest.failure !== null) return null;
  if (latest.data === null) return <Loading />;
  return <Empty title="No call yet">Calls that pass the filters appear here by themselves.</Empty>;
}

interface FeedBadgeProps {
  readonly feed: FeedView;
  readonly paused: boolean;
}

function FeedBadge({ feed, paused }: FeedBadgeProps) {
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
