// What came back for a call: the answer, how it was routed, and the headers of the service.

import { jsonText, memberOf, textIn } from "../../api/json.ts";
import { Card, Facts, Figure, Figures } from "../../components/card.tsx";
import { bytes, DASH, milliseconds } from "../../format/text.ts";
import type { TestAnswer } from "./rpc-call.ts";

/** The card. */
export function AnswerCard({ answer }: { readonly answer: TestAnswer }) {
  const { status, ms, meta, body, headers } = answer;
  const at = (name: string): unknown => memberOf(meta, name);
  return (
    <>
      <Figures>
        <Figure label="Status" value={status} note={"error" in Object(body) ? "error" : "result"} />
        <Figure label="Seen here" value={milliseconds(ms)} unit="ms" />
        <Figure label="At the provider" value={numberText(at("upstream_latency_ms"))} unit="ms" />
        <Figure label="Added by the service" value={numberText(at("svc_overhead_ms"))} unit="ms" />
        <Figure label="Provider" value={textIn(memberOf(at("selected_provider"), "id")) || DASH} />
        <Figure label="Size" value={bytes(answer.bytes)} />
      </Figures>
      <div class="grid grid-2">
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

interface JsonProps {
  readonly value: unknown;
  readonly label: string;
}

/** A value as indented JSON; what is long is cut. */
export function Json({ value, label }: JsonProps) {
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
