// The log of the account's own calls, and of what went wrong with them: the latest that the service
// keeps, without parameters and results.

import type { AnswerOf, RequestOf } from "../../api/contract-types.ts";
import { useCall, useQuery } from "../../app/app.ts";
import { PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Choices, Select } from "../../components/controls.tsx";
import { StateBadge, Time } from "../../components/inline.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { bytes, milliseconds, plural, textList } from "../../format/text.ts";
import { endText, OUTCOMES, type Outcome, reasonText } from "../../health/outcomes.ts";

type Call = AnswerOf<"GET /api/v1/calls">["calls"][number];
type Query = RequestOf<"GET /api/v1/calls">["query"];

const POLL_MS = 5_000;
const LIMIT = 200;
const PAGE_ROWS = 25;

const CHOICES = [
  { value: "", label: "All" },
  ...Object.entries(OUTCOMES).map(([value, { word }]) => ({ value, label: word })),
];

/** The page. */
export function CallsPage() {
  const [outcome, setOutcome] = useQuery("outcome");
  const [key, setKey] = useQuery("key");
  const keys = useCall("GET /api/v1/keys", {});
  const query: Query = {
    limit: LIMIT,
    ...(isOutcome(outcome) ? { outcome } : {}),
    ...(key === "" ? {} : { key }),
  };
  const calls = useCall("GET /api/v1/calls", { query }, POLL_MS);
  const names = new Map(keys.data?.keys.map((row) => [row.id, row.name || row.key_prefix]));
  const options = [
    { value: "", label: "All keys" },
    ...Array.from(names, ([value, label]) => ({ value, label })),
  ];
  return (
    <>
      <PageHead
        title="Calls"
        lead="The latest calls with the keys of this account. Where the service has many, only some are kept: those that did not go well first."
      >
        <Select label="Key" hidesName options={options} value={key} choose={setKey} />
        <Choices label="Outcome" options={CHOICES} value={outcome} choose={setOutcome} />
      </PageHead>
      <TableCard
        title="Log"
        lead={`The newest ${LIMIT}, without parameters and results`}
        resource={calls}
        name="log"
        caption="Calls of the account"
        columns={columnsOf(names)}
        rows={calls.data?.calls ?? []}
        keyOf={keyOf}
        textOf={(row) =>
          `${row.method} ${row.chain} ${endText(row)} ${row.cause} ${row.request_id}`
        }
        pageRows={PAGE_ROWS}
        empty="No call is kept"
      />
    </>
  );
}

function isOutcome(text: string): text is Outcome {
  return text in OUTCOMES;
}

/** Calls of one batch have one request id: what else is equal, too, is as good as the same. */
function keyOf({ request_id: id, at, method, total_ms: ms, added_ms: added }: Call): string {
  return `${id} ${at} ${method} ${ms} ${added}`;
}

const columnsOf = (names: ReadonlyMap<string, string>): readonly Column<Call>[] => [
  column.of("at", "Ended", ({ at }) => <Time at={at} />, "tight"),
  column.of("method", "Method", ({ method }) => <code>{method}</code>, {
    kind: "lead",
    note: ({ chain, profile }) => textList([chain, profile]),
  }),
  column.of("outcome", "Outcome", outcomeOf, { note: whyOf }),
  column.of("key", "Key", ({ key_id: id }) => <bdi>{names.get(id ?? "") ?? "deleted"}</bdi>),
  column.text("provider", "Answered by", (row) => row.provider, { note: triesOf }),
  column.number("total", "Total ms", (row) => row.total_ms, milliseconds),
  column.number("added", "Added ms", (row) => row.added_ms, milliseconds),
  column.number("size", "Answer", (row) => row.answer_bytes, bytes),
];

function outcomeOf({ outcome }: Call) {
  return <StateBadge {...OUTCOMES[outcome]} />;
}

function whyOf({ outcome, reason, error }: Call): string {
  const why = reason !== null && reasonText(`${outcome}.${reason}`);
  return outcome === "answered" ? "" : textList([why, errorText(error)]);
}

/** What a call that was answered met on its way. */
function triesOf({ outcome, source, attempts, error }: Call): string {
  const tries = attempts > 1 && plural(attempts, "attempt");
  const failed = outcome === "answered" && error !== null && `one failed: ${errorText(error)}`;
  return textList([source !== "provider" && source, tries, failed]);
}

function errorText(error: Call["error"]): string {
  return textList([error?.category.replaceAll("_", " "), error?.code?.toString()], " ");
}
