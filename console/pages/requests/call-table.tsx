// Calls at their end, newest first, as a table that is drawn often: one line a call, no sorting.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type CallEvent, MAX_CALLS, newCalls } from "../../api/use-feed.ts";
import { useApp } from "../../app/app.ts";
import * as column from "../../components/columns.tsx";
import { Button } from "../../components/controls.tsx";
import { Badge, Name } from "../../components/inline.tsx";
import type { KeyNames } from "../../components/key-names.ts";
import { type Column, Table } from "../../components/table.tsx";
import {
  DASH,
  milliseconds,
  moment,
  plural,
  textList,
  timeOfDay,
  visible,
} from "../../format/text.ts";
import { endText, OUTCOMES, reasonText } from "../../health/outcomes.ts";
import { lacksReasons } from "./decision-sentence.ts";

interface CallTableProps {
  readonly calls: readonly CallEvent[];
  readonly keys: KeyNames;
  readonly empty: string;
}

/** The table of calls. */
export function CallTable({ calls, keys, empty }: CallTableProps) {
  const { router } = useApp();
  const columns = useMemo(() => columnsOf(keys), [keys]);
  return (
    <Table
      name="calls"
      caption="Calls"
      look="dense"
      columns={columns}
      rows={calls}
      keyOf={({ id }) => id}
      open={({ id }) => router.go(`/requests/${id}`)}
      empty={empty}
    />
  );
}

interface LiveTableProps extends CallTableProps {
  /** Which calls these are. */
  readonly words: string;
}

/**
 * The table of calls as they come. Its rows stand still while the pointer is over them or their top
 * is out of view: what is new is counted above meanwhile, and shown when that is asked for.
 */
export function LiveTable({ calls, words, ...rest }: LiveTableProps) {
  const [isOver, setOver] = useState(false);
  const [isTopSeen, setTopSeen] = useState(true);
  const [, redraw] = useState(0);
  const shown = useRef(calls);
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const observer = new IntersectionObserver((seen) =>
      setTopSeen(seen.at(-1)?.isIntersecting === true),
    );
    if (top.current !== null) observer.observe(top.current);
    return () => observer.disconnect();
  }, []);
  const isStill = shown.current.length > 0 && (isOver || !isTopSeen);
  if (!isStill) shown.current = calls;
  const waiting = isStill ? newCalls(calls, shown.current) : 0;
  const show = (): void => {
    shown.current = calls;
    redraw((times) => times + 1);
  };
  return (
    <>
      <div ref={top} />
      <div class="pager live-line">
        <span>{words}</span>
        {waiting === 0 ? null : (
          <Button look="small" press={show}>
            {waiting < MAX_CALLS ? "" : "At least "}
            {plural(waiting, "new call")} – show
          </Button>
        )}
      </div>
      <div onPointerEnter={() => setOver(true)} onPointerLeave={() => setOver(false)}>
        <CallTable calls={shown.current} {...rest} />
      </div>
    </>
  );
}

/** The outcome of a call in a word. */
export function OutcomeBadge({ call }: { readonly call: CallEvent }) {
  return <Badge tone={OUTCOMES[call.outcome].tone}>{endText(call)}</Badge>;
}

function columnsOf(keys: KeyNames): readonly Column<CallEvent>[] {
  return [
    column.of("at", "Ended", ({ at }) => (
      <time dateTime={at} title={moment(Date.parse(at))}>
        {timeOfDay(Date.parse(at))}
      </time>
    )),
    column.of("chain", "Chain", ({ chain, profile }) =>
      cut(chain ?? DASH, textList([chain, profile !== null && `profile ${profile}`])),
    ),
    column.of("method", "Method", ({ method }) => <code>{cut(method ?? DASH)}</code>, "lead"),
    column.of("caller", "Caller", (call) => callerOf(call, keys)),
    column.of("provider", "Provider", (call) =>
      cut(call.provider ?? (sourceText(call) || DASH), textList([call.provider, sourceText(call)])),
    ),
    column.of("outcome", "Outcome", outcomeOf, "wide"),
    column.figure("total", "ms", (call) => call.total_ms, milliseconds),
    column.of("attempts", "Attempts", attemptsOf, "number"),
  ];
}

/** A text that may end in dots; the whole one shows on hover. */
function cut(text: string, whole = text) {
  return (
    <span title={visible(whole)}>
      <Name text={text} />
    </span>
  );
}

/** The key that made a call; of a request that was not read nobody knows. */
function callerOf({ key_id: id, method }: CallEvent, keys: KeyNames) {
  if (id === null) return <span class="muted">{method === null ? DASH : "no key"}</span>;
  const name = keys.get(id);
  return cut(name ?? id, textList([name, id]));
}

function outcomeOf({ outcome, reason, cause, notification }: CallEvent) {
  const { tone, word } = OUTCOMES[outcome];
  const why = textList([
    reason !== null && reasonText(`${outcome}.${reason}`),
    notification && "notification",
  ]);
  return (
    <span title={visible(textList([word, why, cause]))}>
      <Badge tone={tone}>{word}</Badge> <span class="muted">{why}</span>
    </span>
  );
}

function attemptsOf(call: CallEvent) {
  const { attempts, failovers } = call;
  const number = <span class={failovers > 0 ? "warn toned" : ""}>{attempts}</span>;
  if (!lacksReasons(call)) return number;
  return (
    <>
      <span class="muted">why not recorded</span> {number}
    </>
  );
}

const SOURCES: Readonly<Record<CallEvent["source"], string>> = {
  provider: "",
  cache: "from the cache",
  merged: "joined from parts",
  shared: "shared with another call",
  heads: "from the heads of providers",
  accepted: "as it was handed in",
  refused: "range refused",
  local: "by the service itself",
  none: "",
};

function sourceText({ source, hedged, pinned, panic }: CallEvent): string {
  const words = [hedged && "hedged", pinned && "pinned", panic && "every circuit was open"];
  return textList([SOURCES[source], ...words]);
}
