// The errors of calls by shape: what users saw first, then what failover hid from them. What no
// rule knows is on top of each list.

import { useCall } from "../../app/app.ts";
import { PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Name, Time, type Word } from "../../components/inline.tsx";
import { useKeyNames } from "../../components/key-names.ts";
import { type Column, TableCard } from "../../components/table.tsx";
import { count, DASH, plural, visible } from "../../format/text.ts";
import { endText } from "../../health/outcomes.ts";
import { errorText, providerNames, type Shape, ShapeDetail, Trend } from "./shape-detail.tsx";

const POLL_MS = 10_000;
const NAMES_SHOWN = 2;

/** The page of errors. */
export function ErrorsPage() {
  const errors = useCall("GET /api/v1/operator/errors", { query: { limit: 500 } }, POLL_MS);
  const { totals, others, seen = [], hidden = [] } = errors.data ?? {};
  const rest = Object.values(others ?? {}).reduce((sum, n) => sum + n, 0);
  const keys = useKeyNames();
  // Both tables have one filter and one order.
  const expand = (shape: Shape) => <ShapeDetail {...{ shape, keys }} />;
  const both = { resource: errors, name: "errors", keyOf, textOf, expand };
  return (
    <>
      <PageHead
        title="Errors"
        lead={
          "Errors alike in category, code, HTTP status and words, of all providers, since the " +
          "start. Secrets are taken out of every sample." +
          (rest === 0 ? "" : ` ${plural(rest, "error")} of rarer shapes are not listed.`)
        }
      />
      <TableCard
        {...both}
        title="Users saw"
        lead={
          totals &&
          `${plural(totals.failed, "call")} failed; ${count(totals.caller_error)} ended with the ` +
            "caller's own error."
        }
        caption="Errors that users saw"
        columns={SEEN_COLUMNS}
        rows={seen.map((shape) => ({ ...shape, hidden: false }))}
        empty="No call has ended with an error"
      />
      <TableCard
        {...both}
        title="Hidden by failover"
        lead={
          totals && `${plural(totals.hidden, "attempt")} failed, and the user got another answer.`
        }
        caption="Errors hidden by failover"
        columns={COLUMNS}
        rows={hidden.map((shape) => ({ ...shape, hidden: true }))}
        empty="No provider has failed behind an answer"
      />
    </>
  );
}

function keyOf({ outcome, category, code, http_status: status, sample, first_seen }: Shape) {
  return [outcome, category, code, status, sample, first_seen].join(" ");
}

function textOf({ category, code, sample, behind, providers, methods }: Shape): string {
  const names = [...providers.flatMap(Object.values), ...methods.map(({ method }) => method)];
  return [category, code, sample, behind?.category, behind?.sample, ...names].join(" ");
}

/** What a provider or the service caused is red, or amber where no rule knows it. */
function wordOf({ category, outcome, unknown }: Shape): Word {
  const tone = outcome === "failed" ? "bad" : "idle";
  return { tone: unknown ? "warn" : tone, word: category.replaceAll("_", " ") };
}

/** The first names, and how many more there are; all of them on hover. */
function namesOf(names: readonly string[], hasOthers: boolean) {
  const more = names.length - NAMES_SHOWN;
  const rest = more > 0 ? ` +${more}${hasOthers ? " or more" : ""}` : "";
  const text = names.length === 0 ? DASH : names.slice(0, NAMES_SHOWN).join(", ") + rest;
  return (
    <span title={visible(names.join(", "))}>
      <Name text={text} />
    </span>
  );
}

const COLUMNS: readonly Column<Shape>[] = [
  column.state("category", "Category", wordOf, {
    value: ({ category }) => category,
    note: ({ behind }) => behind && `after ${behind.category.replaceAll("_", " ")}`,
  }),
  column.of(
    "sample",
    "Sample",
    (shape) => <code class="clamp">{visible(shape.sample ?? errorText(shape))}</code>,
    "lead",
  ),
  column.of(
    "providers",
    "Providers",
    (shape) => namesOf(providerNames(shape), shape.others.providers > 0),
    { value: (shape) => providerNames(shape).length },
  ),
  column.of("methods", "Methods", ({ methods, others }) =>
    namesOf(
      methods.map(({ method }) => method),
      others.methods > 0,
    ),
  ),
  column.of("users", "Users", ({ users, others }) => count(users) + (others.users > 0 ? "+" : ""), {
    kind: "number",
    value: ({ users }) => users,
    title: "Callers that are told apart: keys, else addresses",
  }),
  column.number("count", "Count", (shape) => shape.count),
  column.time("last", "Last seen", (shape) => shape.last_seen, {
    kind: "number",
    note: ({ first_seen }) => ["first ", <Time key="first" at={first_seen} />],
  }),
  column.of("trend", "Last hour", ({ trend }) => <Trend steps={trend} />),
];

const SEEN_COLUMNS: readonly Column<Shape>[] = COLUMNS.toSpliced(
  1,
  0,
  column.text("end", "The call", (shape) => endText({ ...shape, notification: false })),
);
