// The requests page: calls as they end, those of a stretch of the past, or those of one request id,
// with filters that stand in the address.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import type { FeedState } from "../../api/feed.ts";
import { type FeedView, MAX_CALLS, useFeed } from "../../api/use-feed.ts";
import { useApp, useCall, useStore, useTimed } from "../../app/app.ts";
import { queryText } from "../../app/router.ts";
import { Card, PageHead } from "../../components/card.tsx";
import { Button } from "../../components/controls.tsx";
import { Icon } from "../../components/icons.tsx";
import { IncidentCard, useIncidents } from "../../components/incident-list.tsx";
import { StateBadge, Time, type Word } from "../../components/inline.tsx";
import { type KeyNames, useKeyNames } from "../../components/key-names.ts";
import { Loaded } from "../../components/page-state.tsx";
import {
  RangePicker,
  rangeWords,
  useRange,
  useServiceHistory,
} from "../../components/range-picker.tsx";
import { count, duration, plural, rate } from "../../format/text.ts";
import { beginningAt, type Range } from "../../health/ranges.ts";
import { type History, total } from "../../health/series.ts";
import { CallTable, LiveTable } from "./call-table.tsx";
import { Filters, filtersIn } from "./filters.tsx";

const MOST_KEPT = 200;

type Decisions = AnswerOf<"GET /api/v1/operator/decisions">;

interface CallsProps {
  readonly range: Range;
  readonly history: History | null;
  readonly keys: KeyNames;
}

/** The page. */
export function RequestsPage() {
  const { router } = useApp();
  const { id } = useStore(router.place).query;
  const range = useRange();
  const history = useServiceHistory(range).data;
  const isLive = range.from === undefined && !id;
  const Calls = isLive ? LiveCalls : KeptCalls;
  return <Calls {...{ range, history, keys: useKeyNames() }} />;
}

function LiveCalls({ range, history, keys }: CallsProps) {
  const { router, nowMs } = useApp();
  const filters = filtersIn(useStore(router.place).query);
  const latest = useCall("GET /api/v1/operator/decisions", {
    query: { ...filters, limit: MAX_CALLS },
  });
  const [paused, setPaused] = useState(false);
  const watched = queryText(filters);
  const feed = useFeed(watched, latest.data?.decisions, paused);
  const fromMs = beginningAt(range, nowMs.get());
  const calls = feed.calls.filter(({ at }) => Date.parse(at) >= fromMs);
  return (
    <>
      <PageHead
        title="Requests"
        lead={`Calls as they end, and why each went where it went.${useNodeText()}`}
      >
        <FeedBadge feed={feed} paused={paused} />
        <Button pressed={paused} press={() => setPaused(!paused)}>
          <Icon name={paused ? "play" : "pause"} />
          {paused ? "Resume" : "Pause"}
        </Button>
        <RangePicker history={history} />
      </PageHead>
      <Card flush>
        <Filters {...{ keys, calls }} />
        <Loaded resource={latest}>
          {({ unwatched_per_second: few }) => (
            <LiveTable
              key={watched}
              {...{ calls, keys }}
              words={feed.gap || `The latest ${MAX_CALLS} at most. ${earlier(few)}`}
              empty={`No call yet ${rangeWords(range)} that passes the filters`}
            />
          )}
        </Loaded>
      </Card>
    </>
  );
}

function earlier(perSecond: number): string {
  return `Before this page was open, at most ${perSecond} a second were kept, more if watched.`;
}

function KeptCalls({ range, history, keys }: CallsProps) {
  const { router } = useApp();
  const filters = filtersIn(useStore(router.place).query);
  const { id } = filters;
  const { from, to } = range;
  // The id of a request is looked for at all times.
  const query = { ...filters, ...(id === undefined ? { from, to } : {}), limit: MOST_KEPT };
  const found = useCall("GET /api/v1/operator/decisions", { query });
  const incidents = useIncidents({}, history);
  const lead = id === undefined ? "Calls that ended in this time." : "Calls of one request id.";
  return (
    <>
      <PageHead title="Requests" lead={`${lead}${useNodeText()}`}>
        {id === undefined ? <RangePicker history={history} /> : null}
      </PageHead>
      <Card flush>
        <Filters keys={keys} calls={found.data?.decisions ?? []} />
        <Loaded resource={found}>
          {(answer) => (
            <>
              <p class="card-body small muted">
                {id === undefined
                  ? shownText(answer, history)
                  : "A call is listed once it has ended."}{" "}
                <KeptText {...answer} />
              </p>
              <CallTable
                calls={answer.decisions}
                keys={keys}
                empty={`No call of this ${id ? "request id" : "time"} and these filters is kept`}
              />
            </>
          )}
        </Loaded>
      </Card>
      {id !== undefined || incidents.length === 0 ? null : <IncidentCard incidents={incidents} />}
    </>
  );
}

/** How many calls of a time are shown, and of how many. */
function shownText({ decisions }: Decisions, history: History | null): string {
  const calls = history?.series.find(({ kind }) => kind === "service")?.calls ?? [];
  const shown = `${plural(decisions.length, "call")} shown, ${MOST_KEPT} at most`;
  return `${shown}; ${count(total(calls))} were counted in these steps, whatever the filters.`;
}

/** Which calls are kept, and what became of the others. */
function KeptText({ kept, per_second: most, unwatched_per_second: few }: Decisions) {
  const since = (at: string | null) =>
    at === null ? "the start of the service" : <Time at={at} />;
  return (
    <>
      Of many calls a second some are kept, failed ones first: at most {few} a second, and {most} of
      each filter that somebody watches. Those that went well go back to {since(kept.good_since)},
      those that failed, were slow or took several attempts to {since(kept.notable_since)}.
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
