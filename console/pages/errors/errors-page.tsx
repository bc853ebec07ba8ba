// The errors of providers by shape: unknown ones first, with the rule that would classify them.

import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import { PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import type { Word } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { DASH } from "../../format/text.ts";
import { isFailure, OUTCOMES } from "../../health/outcomes.ts";

type Errors = AnswerOf<"GET /api/v1/operator/errors">;
type Shape = Errors["shapes"][number] & { readonly at: number };

const POLL_MS = 10_000;

/** The page of errors. */
export function ErrorsPage() {
  const errors = useCall("GET /api/v1/operator/errors", { query: { limit: 500 } }, POLL_MS);
  return (
    <>
      <PageHead
        title="Errors"
        lead={
          "What providers answered, by shape. A row opens to its sample, and to a rule where none " +
          "knows it. Secrets are taken out of every sample."
        }
      />
      <TableCard
        resource={errors}
        name="errors"
        caption="Errors of providers"
        columns={COLUMNS}
        rows={errors.data?.shapes.map((shape, at) => ({ ...shape, at })) ?? []}
        keyOf={keyOf}
        textOf={({ provider, chain, method, category, sample, code }) =>
          `${provider} ${chain} ${method} ${category} ${code ?? ""} ${sample ?? ""}`
        }
        expand={(row) => <ShapeDetail shape={row} />}
        empty="No provider has answered with an error"
      />
    </>
  );
}

function keyOf(shape: Shape): string {
  const { provider, chain, profile, method, category, code, http_status: status, sample } = shape;
  return [provider, chain, profile, method, category, code, status, sample].join(" ");
}

function ShapeDetail({ shape }: { readonly shape: Shape }) {
  return (
    <div class="stack">
      <Snippet text={shape.sample ?? "No sample was kept."} what="the sample" />
      {shape.rule === null ? null : (
        <>
          <p class="small muted">
            No rule knows this error. This entry under <code>error_rules</code> in the configuration
            classifies it; choose the category that fits.
          </p>
          <Snippet text={shape.rule.yaml} what="the rule" />
        </>
      )}
    </div>
  );
}

/** What counts against its provider is red, or amber where no rule knows it. */
function wordOf({ category, group, rule }: Shape): Word {
  const failure = rule === null ? "bad" : "warn";
  return { tone: isFailure(group) ? failure : "idle", word: category.replaceAll("_", " ") };
}

/** What a call comes to that ends with such an error. */
function endOf({ group }: Shape): string {
  if (group === "cut") return DASH;
  return OUTCOMES[isFailure(group) ? "failed" : "caller_error"].word;
}

const COLUMNS: readonly Column<Shape>[] = [
  column.state("category", "Category", wordOf, {
    value: ({ category, at }) => (category === "unknown" ? -1 : at),
  }),
  column.text("end", "A call that ends so", endOf),
  column.text("provider", "Provider", ({ provider }) => provider, {
    note: ({ chain, profile }) => `${chain}, ${profile}`,
  }),
  column.code("method", "Method", ({ method }) => method),
  column.text("code", "Code", ({ code }) => code, {
    kind: "number",
    note: ({ http_status: status }) => status && `HTTP ${status}`,
  }),
  column.of(
    "sample",
    "Sample",
    ({ sample }) => <code class="clamp">{sample ?? DASH}</code>,
    "lead",
  ),
  column.number("count", "Count", (shape) => shape.count),
  column.time("last", "Last seen", (shape) => shape.last_seen, { kind: "number" }),
];
