// The columns that every table of subscriptions has: how each is, who feeds it, what it counted.
import { DASH } from "../format/numbers.ts";
import type { Tone } from "../format/tone.ts";
import { Badge } from "./badge.tsx";
import { numberColumn } from "./columns.ts";
import type { Column } from "./table.tsx";

type State = "opening" | "live" | "recovering";

interface ShownStream {
  readonly state: State;
  readonly provider: string | null;
  readonly pinned: boolean;
  readonly subscribers: number;
  readonly block_height: number | null;
  readonly blocks_behind: number | null;
  readonly events: number;
  readonly failovers: number;
  readonly blocks_filled: number;
}

/** How each state is shown. */
export const STREAM_STATES: Readonly<
  Record<State, { readonly tone: Tone; readonly word: string }>
> = {
  opening: { tone: "idle", word: "Opening" },
  live: { tone: "good", word: "Live" },
  recovering: { tone: "warn", word: "Recovering" },
};

/** State, source under this label, subscribers and blocks. */
export function sourceColumns<Row extends ShownStream>(label: string): readonly Column<Row>[] {
  return [
    {
      id: "state",
      label: "State",
      value: ({ state }) => ["recovering", "opening", "live"].indexOf(state),
      render: ({ state }) => (
        <Badge tone={STREAM_STATES[state].tone}>{STREAM_STATES[state].word}</Badge>
      ),
    },
    {
      id: "provider",
      label,
      value: ({ provider }) => provider,
      render: ({ provider, pinned }) => (
        <span class="wrap-anywhere">
          {provider ?? DASH}
          {pinned ? ", pinned" : ""}
        </span>
      ),
    },
    numberColumn("subscribers", "Subscribers", ({ subscribers }) => subscribers),
    numberColumn("height", "Height", ({ block_height: height }) => height),
    numberColumn("behind", "Behind", ({ blocks_behind: behind }) => behind),
  ];
}

/** Events, failovers and filled blocks. */
export function eventColumns<Row extends ShownStream>(): readonly Column<Row>[] {
  return [
    numberColumn("events", "Events", ({ events }) => events),
    numberColumn("failovers", "Failovers", ({ failovers }) => failovers),
    numberColumn("filled", "Blocks filled", ({ blocks_filled: filled }) => filled),
  ];
}
