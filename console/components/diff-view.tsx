// Two texts and where they differ, line by line.
import { useMemo } from "preact/hooks";
import { differs, lineDiff } from "../format/line-diff.ts";

interface DiffProps {
  readonly before: string;
  readonly after: string;
  /** What is compared, for readers of screens. */
  readonly label: string;
  /** What it means that nothing differs. */
  readonly same?: string;
}

const MARKS = {
  same: { sign: " ", tone: "" },
  removed: { sign: "−", tone: "bad" },
  added: { sign: "+", tone: "good" },
} as const;
const MAX_LINES = 2_000;

/** Lines with a mark for each difference. */
export function DiffView(props: DiffProps) {
  const { before, after, label, same = "No difference." } = props;
  const lines = useMemo(() => lineDiff(before, after), [before, after]);
  if (!differs(lines)) return <p class="muted small">{same}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it
    <section class="diff" aria-label={label} tabIndex={0}>
      {lines.slice(0, MAX_LINES).map(({ kind, text }, at) => (
        <div key={at} class={`diff-line ${MARKS[kind].tone}`}>
          <span aria-hidden="true">{MARKS[kind].sign}</span>
          {kind === "same" ? null : <span class="visually-hidden">{kind}: </span>}
          {text}
        </div>
      ))}
    </section>
  );
}
