// What came back for a call: the answer, decoded and raw, why that provider was asked, and the
// headers of the service.

import { jsonText, memberOf, textIn } from "../../api/json.ts";
import { ForOperator } from "../../app/app.ts";
import { pathTo } from "../../app/router.ts";
import { Card, Facts, figures, inUnit } from "../../components/card.tsx";
import { Link } from "../../components/inline.tsx";
import { bytes, DASH, milliseconds, visible } from "../../format/text.ts";
import { type Decoded, decodeError, decodeResult } from "./decode.ts";
import { reasonsOf } from "./routing-reasons.ts";
import type { TestAnswer } from "./rpc-call.ts";

/** The card. */
export function AnswerCard({ answer }: { readonly answer: TestAnswer }) {
  const { call, status, ms, meta, body } = answer;
  const at = (name: string): unknown => memberOf(meta, name);
  const error = memberOf(body, "error");
  const decoded =
    error === undefined ? decodeResult(call.method, memberOf(body, "result")) : decodeError(error);
  return (
    <>
      {figures([
        ["Status", status, error === undefined ? "result" : "error"],
        ["Seen here", inUnit(milliseconds(ms), "ms")],
        ["At the provider", inUnit(numberText(at("upstream_latency_ms")), "ms")],
        ["Added by the service", inUnit(numberText(at("svc_overhead_ms")), "ms")],
        ["Provider", textIn(memberOf(at("selected_provider"), "id")) || DASH],
        ["Size", bytes(answer.bytes)],
      ])}
      <div class="grid">
        {decoded === null ? null : (
          <Card title={error === undefined ? "Decoded" : "Error"} lead={nameOf(answer)}>
            <section class="decoded" aria-label="Decoded">
              <DecodedView value={decoded} />
            </section>
          </Card>
        )}
        <Card title="Answer" lead={decoded === null ? nameOf(answer) : "As it came"}>
          <Json value={body} label="Answer" />
        </Card>
      </div>
      <Routing answer={answer} />
    </>
  );
}

function nameOf({ call: { method, chain } }: TestAnswer): string {
  return `${method} on ${chain}`;
}

function DecodedView({ value }: { readonly value: Decoded }) {
  if (typeof value === "string") return <bdi>{visible(value)}</bdi>;
  return (
    <Facts
      facts={value.map(([name, part]) => [visible(name), <DecodedView key={name} value={part} />])}
    />
  );
}

/** Why this provider answered, and all that the service told of the way. */
function Routing({ answer: { call, meta, headers } }: { readonly answer: TestAnswer }) {
  const id = new Map(headers).get("x-svc-request-id");
  return (
    <Card
      title="Why this provider"
      actions={
        id === undefined ? null : (
          <ForOperator>
            <Link class="button small" to={pathTo("requests", id)}>
              Open the decision
            </Link>
          </ForOperator>
        )
      }
    >
      <div class="stack">
        <ul>
          {reasonsOf(meta, call.provider !== null).map((reason) => (
            <li key={reason}>{visible(reason)}</li>
          ))}
        </ul>
        <details>
          <summary>Evidence and headers</summary>
          <div class="stack">
            <Json value={meta} label="Evidence" />
            <Facts facts={headers} class="mono" />
          </div>
        </details>
      </div>
    </Card>
  );
}

/** A value as indented JSON; what is long is cut. */
export function Json({ value, label }: { readonly value: unknown; readonly label: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so keys must reach it
    <section class="json" tabIndex={0} aria-label={label}>
      <pre>{jsonText(value)}</pre>
    </section>
  );
}

function numberText(value: unknown): string {
  return typeof value === "number" ? milliseconds(value) : DASH;
}
