// The errors of providers by shape: unknown ones first, with the rule that would classify them.
import type { JSX } from "preact";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useCall } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, PageHead } from "../../components/card.tsx";
import { Noted, numberColumn, textColumn, timeColumn } from "../../components/columns.tsx";
import { Snippet } from "../../components/copy-button.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { DASH } from "../../format/numbers.ts";

type Errors = AnswerOf<"GET /api/v1/operator/errors">;
type Shape = Errors["shapes"][number] & { readonly at: number };

const POLL_MS = 10_000;

/** The page of errors. */
export function ErrorsPage(): JSX.Element {
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
      <Card flush>
        <Loaded resource={errors}>{(data) => <ErrorTable {...data} />}</Loaded>
      </Card>
    </>
  );
}

function ErrorTable({ shapes }: Errors): JSX.Element {
  const rows = shapes.map((shape, at) => ({ ...shape, at }));
  return (
    <Table
      name="errors"
      caption="Errors of providers"
      columns={COLUMNS}
      rows={rows}
      keyOf={keyOf}
      textOf={({ provider, chain, method, category, sample, code }) =>
        `${provider} ${chain} ${method} ${category} ${code ?? ""} ${sample ?? ""}`
      }
      expand={(row) => <ShapeDetail shape={row} />}
      empty="No provider has answered with an error"
    />
  );
}

function keyOf(shape: Shape): string {
  const { provider, chain, profile, method, category, code, http_status: status, sample } = shape;
  return [provider, chain, profile, method, category, code, status, sample].join(" ");
}

function ShapeDetail({ shape }: { readonly shape: Shape }): JSX.Element {
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

const COLUMNS: readonly Column<Shape>[] = [
  {
    id: "category",
    label: "Category",
    value: ({ category, at }) => (category === "unknown" ? -1 : at),
    render: ({ category, rule }) => (
      <Badge tone={rule === null ? "idle" : "warn"}>{category.replaceAll("_", " ")}</Badge>
    ),
  },
  textColumn("provider", "Provider", ({ provider }) => provider, {
    render: ({ provider, chain, profile }) => (
      <Noted note={`${chain}, ${profile}`}>{provider}</Noted>
    ),
  }),
  textColumn("method", "Method", ({ method }) => method, {
    render: ({ method }) => <code>{method}</code>,
  }),
  textColumn("code", "Code", ({ code }) => code, {
    kind: "number",
    render: ({ code, http_status: status }) => (
      <>
        {code ?? DASH}
        <small>{status === null ? "" : `HTTP ${status}`}</small>
      </>
    ),
  }),
  {
    id: "sample",
    label: "Sample",
    kind: "lead",
    render: ({ sample }) => <code class="clamp">{sample ?? DASH}</code>,
  },
  numberColumn("count", "Count", (shape) => shape.count),
  timeColumn("last", "Last seen", (shape) => shape.last_seen, { kind: "number" }),
];
