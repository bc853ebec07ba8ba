// One call: its outcome, the candidates in order with the reasons, excluded providers, the attempts
// as a waterfall, and the plans of other strategies.
import type { JSX } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import type { PageProps } from "../../app/app.ts";
import { useCall } from "../../app/app.ts";
import { Card, Figure, Figures, PageHead } from "../../components/card.tsx";
import { Link } from "../../components/link.tsx";
import { Empty, Loaded } from "../../components/page-state.tsx";
import { Time } from "../../components/time.tsx";
import { bytes, DASH, milliseconds } from "../../format/numbers.ts";
import { OutcomeBadge } from "./call-table.tsx";
import { Candidates, Excluded } from "./candidates.tsx";
import { Waterfall } from "./waterfall.tsx";
import { WhatIf } from "./what-if.tsx";

/** A call with the plan that it was routed by. */
export type Decision = AnswerOf<"GET /api/v1/operator/decisions/{id}">;

/** The page of a decision. */
export function DecisionPage({ params }: PageProps): JSX.Element {
  const { id = "" } = params;
  const decision = useCall("GET /api/v1/operator/decisions/{id}", { params: { id } });
  const { failure } = decision;
  const isGone = failure?.kind === "refused" && failure.status === 404;
  return (
    <>
      <p class="breadcrumb">
        <Link to="/requests">Requests</Link>
      </p>
      {isGone ? (
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

function DecisionView({ decision }: { readonly decision: Decision }): JSX.Element {
  const { method, chain, profile, strategy, candidates, excluded, order } = decision;
  return (
    <>
      <PageHead
        title={
          <span class="headline">
            <span class="mono">{method}</span> <OutcomeBadge call={decision} />
          </span>
        }
        lead={
          <>
            {chain}, profile {profile}, strategy {strategy}, <Time at={decision.at} />
          </>
        }
      />
      <DecisionFigures decision={decision} />
      <Card title="Attempts" lead={attemptsText(decision)}>
        <Waterfall attempts={decision.timeline} totalMs={decision.total_ms} />
      </Card>
      <Card title="Candidates" lead={candidatesText(decision)} flush>
        {candidates.length > 0 ? (
          <Candidates candidates={candidates} />
        ) : (
          <PlainOrder order={order} />
        )}
      </Card>
      {excluded.length === 0 ? null : (
        <Card title="Excluded" lead="They could not be asked for this call." flush>
          <Excluded excluded={excluded} />
        </Card>
      )}
      {decision.what_if ? <WhatIf decision={decision} /> : null}
      <Card title="The call">
        <CallFacts decision={decision} />
      </Card>
    </>
  );
}

function DecisionFigures({ decision }: { readonly decision: Decision }): JSX.Element {
  const { total_ms: total, upstream_ms: upstream, added_ms: added, provider } = decision;
  return (
    <Figures>
      <Figure label="Total" value={milliseconds(total)} unit="ms" />
      <Figure label="At providers" value={milliseconds(upstream)} unit="ms" />
      <Figure label="Added by the service" value={added?.toFixed(2) ?? DASH} unit="ms" />
      <Figure
        label="Answered by"
        value={<span class="wrap-anywhere">{provider ?? DASH}</span>}
        note={decision.source === "provider" ? "" : decision.source}
      />
    </Figures>
  );
}

function PlainOrder({ order }: { readonly order: readonly string[] }): JSX.Element {
  if (order.length === 0) return <Empty title="No provider could be asked" />;
  return (
    <div class="card-body">
      <ol class="plain-order">
        {order.map((provider) => (
          <li key={provider}>{provider}</li>
        ))}
      </ol>
      <p class="muted small">What decided the order was not recorded for this call.</p>
    </div>
  );
}

function candidatesText({ lag_waived: lagWaived }: Decision): string {
  const order = "In the order in which they were to be asked, with what decided it.";
  return lagWaived ? `${order} ${LAG_WAIVED}` : order;
}

const LAG_WAIVED = "Providers that lag are among them: no other circuit was closed.";

function attemptsText({ timeline, coalesced, cache }: Decision): string {
  const facts = [
    timeline.length === 0 ? "No provider was asked for this call" : "",
    coalesced ? "The answer was shared with another call" : "",
    cache === null ? "" : `Cache: ${cache.result}`,
  ];
  return facts.filter((fact) => fact !== "").join(". ");
}

function CallFacts({ decision }: { readonly decision: Decision }): JSX.Element {
  const { cache, rechecked, error } = decision;
  const facts: readonly (readonly [string, string])[] = [
    ["Request id", decision.request_id],
    ["Key", decision.key_id ?? "none"],
    ["Worker", decision.worker],
    ["Request", bytes(decision.request_bytes)],
    ["Answer", bytes(decision.answer_bytes)],
    ["Cache", cache === null ? "not asked" : cacheText(cache)],
    ["Asked again after null", rechecked ?? "no"],
    ["Hedge", hedgeText(decision)],
    ["Last failure", error === null ? "none" : errorText(error)],
  ];
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <>
          <dt key={`${name} name`}>{name}</dt>
          <dd key={name}>{value}</dd>
        </>
      ))}
    </dl>
  );
}

function cacheText({ result, age_ms: age, class: kind }: NonNullable<Decision["cache"]>): string {
  return [result, age === null ? "" : `${milliseconds(age)} ms old`, kind ?? ""]
    .filter((part) => part !== "")
    .join(", ");
}

function hedgeText({ hedged, hedge_over_budget: isOver }: Decision): string {
  if (isOver) return "wanted, over the budget";
  return hedged ? "a second provider was asked" : "no";
}

function errorText({ provider, category, message }: NonNullable<Decision["error"]>): string {
  return `${provider}: ${category.replaceAll("_", " ")}${message === null ? "" : `, ${message}`}`;
}
