// One call: its outcome, the candidates in order with the reasons, excluded providers, the attempts
// as a waterfall, and the plans of other strategies.

import { type PageProps, useCall } from "../../app/app.ts";
import { Card, Facts, figures, inUnit, PageHead } from "../../components/card.tsx";
import { Notice } from "../../components/controls.tsx";
import { Badge, Link, Time } from "../../components/inline.tsx";
import { Empty, isMissing, Loaded } from "../../components/page-state.tsx";
import {
  bytes,
  DASH,
  hundredths,
  milliseconds,
  textList,
  transportName,
} from "../../format/text.ts";
import { OutcomeBadge } from "./call-table.tsx";
import { type Decision, decisionSentence, lacksReasons } from "./decision-sentence.ts";
import { Candidates, Excluded, WhatIf } from "./what-if.tsx";

/** The page of a decision. */
export function DecisionPage({ params }: PageProps) {
  const { id = "" } = params;
  const decision = useCall("GET /api/v1/operator/decisions/{id}", { params: { id } });
  return (
    <>
      <p class="small">
        <Link to="/requests">Requests</Link>
      </p>
      {isMissing(decision.failure) ? (
        <>
          <PageHead title="Request" lead={id} />
          <Card flush>
            <Empty title="This decision is no longer in memory">
              It made room for newer ones, or the service was restarted. Of calls that went well
              some seconds are kept while many are watched; calls that failed, took several attempts
              or a second and more are kept much longer, and so is what a filter on the list chose.
            </Empty>
          </Card>
        </>
      ) : (
        <Loaded resource={decision}>{(data) => <DecisionView decision={data} />}</Loaded>
      )}
    </>
  );
}

function DecisionView({ decision }: { readonly decision: Decision }) {
  const { method, chain, profile, strategy, candidates, excluded } = decision;
  return (
    <>
      <PageHead
        title={
          <span class="headline">
            <bdi>{method ?? "A request that was not read"}</bdi> <OutcomeBadge call={decision} />
          </span>
        }
        lead={
          <>
            {textList([
              chain,
              profile !== null && `profile ${profile}`,
              strategy !== null && `strategy ${strategy}`,
            ])}{" "}
            <Time at={decision.at} />
          </>
        }
      />
      <p class="decision-sentence wrap-anywhere">{decisionSentence(decision)}</p>
      <Notice>{lacksReasons(decision) ? UNRECORDED : null}</Notice>
      {decisionFigures(decision)}
      <Card title="Attempts">
        <Waterfall attempts={decision.timeline} totalMs={decision.total_ms ?? 0} />
      </Card>
      <Card title="Candidates" lead={candidatesText(decision)} flush>
        {candidates.length > 0 ? (
          <Candidates candidates={candidates} />
        ) : (
          <PlainOrder decision={decision} />
        )}
      </Card>
      {excluded.length > 0 && <Excluded excluded={excluded} />}
      {decision.what_if ? <WhatIf decision={decision} /> : null}
      <Card title="The call">
        <CallFacts decision={decision} />
      </Card>
    </>
  );
}

const UNRECORDED =
  "Why the providers stood in this order was not recorded for this call: where there are many " +
  "calls a second, reasons are recorded for some of them.";

function decisionFigures({ total_ms, upstream_ms, added_ms, provider, source }: Decision) {
  return figures([
    ["Total", inUnit(milliseconds(total_ms), "ms")],
    ["At providers", inUnit(milliseconds(upstream_ms), "ms")],
    ["Added by the service", inUnit(hundredths(added_ms), "ms")],
    [
      "Answered by",
      <span key="name" class="wrap-anywhere">
        {provider ?? DASH}
      </span>,
      source === "provider" ? "" : source,
    ],
  ]);
}

function PlainOrder({ decision: { order, source } }: { readonly decision: Decision }) {
  // An answer from the cache or the heads needs none.
  const isLack = source === "none" || source === "refused" || source === "provider";
  if (order.length === 0)
    return <Empty title={isLack ? "No provider could be asked" : "No provider was needed"} />;
  return (
    <div class="card-body">
      {order.map((provider, at) => (
        <p key={provider}>
          {at + 1}. <bdi>{provider}</bdi>
        </p>
      ))}
    </div>
  );
}

function candidatesText({ lag_waived: lagWaived }: Decision): string {
  const order = "In the order in which they were to be asked, with what decided it.";
  return lagWaived ? `${order} ${LAG_WAIVED}` : order;
}

const LAG_WAIVED = "Providers that lag are among them: no other circuit was closed.";

function CallFacts({ decision }: { readonly decision: Decision }) {
  const { cache, rechecked, error } = decision;
  const facts: readonly (readonly [string, string])[] = [
    ["Request id", decision.request_id ?? DASH],
    ["Ended with", decision.cause ?? DASH],
    ["Key", decision.key_id ?? "none"],
    ["Worker", decision.worker],
    ["Request", bytes(decision.request_bytes)],
    ["Answer", bytes(decision.answer_bytes)],
    ["Cache", cache === null ? "not asked" : cacheText(cache)],
    ["Asked again after null", rechecked ?? "no"],
    ["Hedge", hedgeText(decision)],
    ["Last failure", error === null ? "none" : errorText(error)],
  ];
  return <Facts facts={facts} />;
}

function cacheText({ result, age_ms: age, class: kind }: NonNullable<Decision["cache"]>): string {
  return textList([result, age !== null && `${milliseconds(age)} ms old`, kind]);
}

function hedgeText({ hedged, hedge_over_budget: isOver }: Decision): string {
  if (isOver) return "wanted, over the budget";
  return hedged ? "a second provider was asked" : "no";
}

function errorText({ provider, category, message }: NonNullable<Decision["error"]>): string {
  return `${provider}: ${category.replaceAll("_", " ")}${message === null ? "" : `, ${message}`}`;
}

type Attempt = Decision["timeline"][number];

interface WaterfallProps {
  readonly attempts: readonly Attempt[];
  readonly totalMs: number;
}

/** The attempts of a call. */
function Waterfall({ attempts, totalMs }: WaterfallProps) {
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

function AttemptRow({ attempt, spanMs }: { readonly attempt: Attempt; readonly spanMs: number }) {
  const { provider, transport, started_ms: start, latency_ms: took, outcome } = attempt;
  const { hedged_after_ms: hedgedMs, batched } = attempt;
  const left = ((start ?? 0) / spanMs) * 100;
  const width = Math.max(0.5, (took / spanMs) * 100);
  const failed = attempt.provider_failed ? "bad" : "idle";
  const tone = outcome === "success" ? "good" : failed;
  return (
    <li>
      <div class="waterfall-name">
        <strong class="wrap-anywhere">{provider}</strong>
        <small class="muted">
          {textList([
            transportName(transport),
            hedgedMs !== null && `hedge after ${milliseconds(hedgedMs)} ms`,
            batched !== null && `in a batch of ${batched} calls`,
          ])}
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
  const said = [code !== null && `code ${code}`, message];
  return textList(
    [...said, step && (STEPS[step] ?? step), effect && (EFFECTS[effect] ?? effect)],
    "; ",
  );
}
