// The live feed of decisions: every call at its end, with filters that stand in the address.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import type { FeedState } from "../../api/feed.ts";
import { type FeedView, useFeed } from "../../api/use-feed.ts";
import { useApp, useCall, useStore, useTimed } from "../../app/app.ts";
import { queryText } from "../../app/router.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button, Notice } from "../../components/controls.tsx";
import { Icon } from "../../components/icons.tsx";
import { StateBadge, Time, type Word } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { RangePicker, useRange, useServiceHistory } from "../../components/range-picker.tsx";
import { count, duration, plural, rate } from "../../format/text.ts";
import type { Range } from "../../health/ranges.ts";
import { type History, total } from "../../health/series.ts";
import { CallTable } from "./call-table.tsx";
import { Filters, filtersIn } from "./filters.tsx";

const LATEST = 100;
const MOST_PAST = 200;
const LEAD = "Calls as they end, and why each went where it went.";

/** The page: calls as they end, or those of a stretch of the past. */
export function RequestsPage() {
  const range = useRange();
  return range.from === undefined ? <LiveCalls /> : <PastCalls range={range} />;
}

function LiveCalls() {
  const { router } = useApp();
  const filters = filtersIn(useStore(router.place).query);
  const query = { ...filters, limit: LATEST };
  const latest = useCall("GET /api/v1/operator/decisions", { query });
  const [paused, setPaused] = useState(false);
  const feed = useFeed(queryText(filters), latest.data?.decisions, paused);
  return (
    <>
      <PageHead title="Requests" lead={`${LEAD}${useNodeText()}`}>
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

function PastCalls({ range }: { readonly range: Range }) {
  const { router } = useApp();
  const { from, to } = range;
  const query = { ...filtersIn(useStore(router.place).query), from, to, limit: MOST_PAST };
  const found = useCall("GET /api/v1/operator/decisions", { query });
  const history = useServiceHistory(range);
  return (
    <>
      <PageHead title="Requests" lead={`Calls that ended in this time.${useNodeText()}`}>
        <RangePicker history={history.data} />
      </PageHead>
      <Card flush>
        <Filters />
        <Loaded resource={found}>
          {({ decisions, kept }) => (
            <>
              <p class="card-body small muted">
                <KeptText shown={decisions.length} {...{ kept, history: history.data }} />
              </p>
              <CallTable calls={decisions} open={({ id }) => router.go(`/requests/${id}`)} />
            </>
          )}
        </Loaded>
      </Card>
    </>
  );
}

interface KeptTextProps extends Pick<AnswerOf<"GET /api/v1/operator/decisions">, "kept"> {
  readonly shown: number;
  readonly history: History | null;
}

/** How many calls of that time are shown, of how many, and what became of the others. */
function KeptText({ shown, kept, history }: KeptTextProps) {
  const calls = history?.series.find(({ kind }) => kind === "service")?.calls ?? [];
  const { good_since: sinceMs } = kept;
  return (
    <>
      {plural(shown, "call")} shown; {count(total(calls))} were counted in these steps. Of many
      calls a second, only some are kept
      {sinceMs === null ? null : (
        <>
          , and those that went well since <Time at={sinceMs} /> alone
        </>
      )}
      .
    </>
  );
}

/** Each node keeps what it decided itself. */
function useNodeText(): string {
  const node = useStore(useApp().session.state)?.instance.node ?? null;
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
