// Attempts over the time of a call, each as a bar from its start to its end.
import type { JSX } from "preact";
import { Badge } from "../../components/badge.tsx";
import { Empty } from "../../components/page-state.tsx";
import { milliseconds } from "../../format/numbers.ts";
import type { Decision } from "./decision-page.tsx";

type Attempt = Decision["timeline"][number];

interface WaterfallProps {
  readonly attempts: readonly Attempt[];
  readonly totalMs: number;
}

/** The attempts of a call. */
export function Waterfall({ attempts, totalMs }: WaterfallProps): JSX.Element {
  if (attempts.length === 0) return <Empty title="No attempt was made" />;
  const ends = attempts.map(({ started_ms: start, latency_ms: took }) => (start ?? 0) + took);
  const spanMs = Math.max(totalMs, ...ends, 0.001);
  return (
    <ol class="waterfall">
      {attempts.map((attempt, at) => (
        <AttemptRow key={`${at} ${attempt.provider}`} attempt={attempt} spanMs={spanMs} />
      ))}
    </ol>
  );
}

interface RowProps {
  readonly attempt: Attempt;
  readonly spanMs: number;
}

function AttemptRow({ attempt, spanMs }: RowProps): JSX.Element {
  const { provider, transport, started_ms: start, latency_ms: took, outcome } = attempt;
  const left = ((start ?? 0) / spanMs) * 100;
  const width = Math.max(0.5, (took / spanMs) * 100);
  const tone = outcome === "success" ? "good" : "bad";
  return (
    <li>
      <div class="waterfall-name">
        <strong class="wrap-anywhere">{provider}</strong>
        <small class="muted">
          {transport === "ws" ? "WebSocket" : "HTTP"}
          {attempt.hedged_after_ms === null
            ? ""
            : `, hedge after ${milliseconds(attempt.hedged_after_ms)} ms`}
          {attempt.batched === null ? "" : `, in a batch of ${attempt.batched} calls`}
        </small>
      </div>
      <div class="waterfall-track">
        <i class={tone} style={{ left: `${left}%`, width: `${width}%` }} />
      </div>
      <span class="waterfall-time">{milliseconds(took)} ms</span>
      <div class="waterfall-verdict">
        <Badge tone={tone}>
          {outcome === "success" ? "Answered" : categoryText(attempt.category)}
        </Badge>
        <span class="muted small wrap-anywhere">{verdictText(attempt)}</span>
      </div>
    </li>
  );
}

function categoryText(category: string | null): string {
  if (category === null) return "Failed";
  return category === "unknown" ? "Unknown error" : category.replaceAll("_", " ");
}

/** What may be done after a failed attempt. */
const STEPS: Readonly<Record<string, string>> = {
  return: "returned to the caller",
  next: "another provider may be asked",
  next_once: "one more provider may be asked",
  stop: "no other provider may be asked",
  known: "the transaction was known",
  verify: "whether it was sent is checked",
  range: "may be asked in parts",
};
/** What a failed attempt changes in the health of its provider. */
const EFFECTS: Readonly<Record<string, string>> = {
  ignored: "does not count against it",
  failure: "counts against it",
  cooldown: "it is rate-limited for a while",
  cordon: "it is cordoned",
  learn: "remembered of it",
  lag: "it counts as behind",
};

/** What the provider said, and what followed from it. */
function verdictText({ step, effect, code, message }: Attempt): string {
  return [
    code === null ? "" : `code ${code}`,
    message ?? "",
    step === null ? "" : (STEPS[step] ?? step),
    effect === null ? "" : (EFFECTS[effect] ?? effect),
  ]
    .filter((part) => part !== "")
    .join("; ");
}
