// Chooses the time that all graphs and lists of a page show. It stands in the address.
import type { Resource } from "../api/resource.ts";
import { useApp, useCall, useStore } from "../app/app.ts";
import {
  fieldTime,
  knownSince,
  pollMsOf,
  RANGES,
  type Range,
  rangeBetween,
  rangeIn,
  rangeParameters,
  rangesOf,
} from "../health/ranges.ts";
import type { History } from "../health/series.ts";
import { Button, Field, Select } from "./controls.tsx";
import { Time } from "./inline.tsx";

const DAY_MS = 86_400_000;

/** The range of the page. */
export function useRange(): Range {
  return rangeIn(useStore(useApp().router.place).query);
}

/** Steps of a graph. */
export const MAX_POINTS = 360;

/** History of the whole service, kept current; `withChains`: with sums of each chain. */
export function useServiceHistory(range: Range, withChains = false): Resource<History> {
  const query = {
    ...range,
    points: MAX_POINTS,
    ...(withChains ? { chains: "true" as const } : {}),
  };
  return useCall("GET /api/v1/history", { query }, pollMsOf(range));
}

interface RangePickerProps {
  /** What is shown now; null = nothing yet. */
  readonly history: History | null;
}

/** A choice of ranges until now, and two times between which to look. */
export function RangePicker({ history }: RangePickerProps) {
  const { router, nowMs } = useApp();
  const range = useRange();
  const show = (chosen: Range): void => router.setQuery(rangeParameters(chosen));
  const names = rangesOf(history, range);
  const isBetween = range.from !== undefined;
  const choose = (value: string): void => {
    const name = names.find((each) => each.value === value)?.value;
    const endMs = nowMs.get();
    show(name === undefined ? rangeBetween(endMs - DAY_MS, endMs) : { range: name });
  };
  const change = (part: "from" | "to", text: string): void => {
    const changed = { ...range, [part]: text };
    const [fromMs, toMs] = [Date.parse(changed.from ?? ""), Date.parse(changed.to ?? "")];
    if (fromMs < toMs) show(rangeBetween(fromMs, toMs));
  };
  return (
    <div class="range">
      <Select
        label="Time range"
        hidesName
        value={isBetween ? "" : (range.range ?? "")}
        options={[...names, { value: "", label: "From … to …" }]}
        choose={choose}
      />
      {isBetween ? (
        <>
          {(["from", "to"] as const).map((part) => (
            <Field
              key={part}
              label={part === "from" ? "From" : "To"}
              type="datetime-local"
              value={fieldTime(range[part])}
              change={(text) => change(part, text)}
            />
          ))}
          <Button press={() => show({ range: "hour" })}>Until now</Button>
        </>
      ) : null}
    </div>
  );
}

/** What the range is called in a sentence. */
export function rangeWords({ range }: Range): string {
  return range === undefined ? "in the time shown" : `in the ${RANGES[range].toLowerCase()}`;
}

/** Says since when anything is known, where that is not the whole range. */
export function KnownSince({ history }: { readonly history: History }) {
  const sinceMs = knownSince(history);
  if (sinceMs === null) return null;
  return (
    <p class="small muted">
      Nothing is known of the time before <Time at={sinceMs} />: it is not kept, or the service was
      not running.
    </p>
  );
}
