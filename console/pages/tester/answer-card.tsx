// What came back for a call: the answer, how it was routed, and the headers of the service.

import { jsonText, memberOf, textIn } from "../../api/json.ts";
import { Card, Facts, figures, inUnit } from "../../components/card.tsx";
import { bytes, DASH, milliseconds } from "../../format/text.ts";
import type { TestAnswer } from "./rpc-call.ts";

/** The card. */
export function AnswerCard({ answer }: { readonly answer: TestAnswer }) {
  const { status, ms, meta, body, headers } = answer;
  const at = (name: string): unknown => memberOf(meta, name);
  return (
    <>
      {figures([
        ["Status", status, "error" in Object(body) ? "error" : "result"],
        ["Seen here", inUnit(milliseconds(ms), "ms")],
        ["At the provider", inUnit(numberText(at("upstream_latency_ms")), "ms")],
        ["Added by the service", inUnit(numberText(at("svc_overhead_ms")), "ms")],
        ["Provider", textIn(memberOf(at("selected_provider"), "id")) || DASH],
        ["Size", bytes(answer.bytes)],
      ])}
      <div class="grid">
        <Card title="Answer">
          <Json value={body} label="Answer" />
        </Card>
        <Card title="How it was routed">
          <Json value={meta} label="How it was routed" />
          <Facts facts={headers} class="mono" />
        </Card>
      </div>
    </>
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
