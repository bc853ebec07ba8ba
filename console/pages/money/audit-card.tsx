// The audit for the operator: the result of the last one, and a button that runs another.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useAction } from "../../api/resource.ts";
import { useApp, useCall } from "../../app/app.ts";
import { Card } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Button, Notice } from "../../components/controls.tsx";
import { Time } from "../../components/inline.tsx";
import { failureText, Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { usd } from "../../format/text.ts";
import type { Tone } from "../../format/tone.ts";

type Audit = AnswerOf<"GET /api/v1/operator/audit">;
type LastAudit = AnswerOf<"GET /api/v1/operator/audit/last">;
type AuditPart = NonNullable<LastAudit["books"]>;

const POLL_MS = 60_000;

/** The card. */
export function AuditCard() {
  const { client } = useApp();
  const { busy, failure, run } = useAction();
  const [audit, setAudit] = useState<Audit | null>(null);
  const last = useCall("GET /api/v1/operator/audit/last", {}, POLL_MS);
  const check = (): void => {
    setAudit(null);
    run(client.call("GET /api/v1/operator/audit", {}), (found) => {
      setAudit(found);
      last.reload();
    });
  };
  return (
    <Card
      title="Audit"
      lead="Compares ledger, balances, leased credit, usage and payment chains, to the unit"
      actions={
        <Button disabled={busy} press={check}>
          {busy ? "Checking" : "Check the books"}
        </Button>
      }
    >
      <div class="stack">
        <Loaded resource={last}>{(data) => <LastResults last={data} />}</Loaded>
        {busy && <p role="status">Reading every account and payment chain.</p>}
        <Notice tone="warn">{failure && failureText(failure)}</Notice>
        {audit && <Outcome {...audit} />}
      </div>
    </Card>
  );
}

/** What the last audits found, of the books and of the payment chains. */
function LastResults({ last: { books, chains } }: { readonly last: LastAudit }) {
  if (books === null)
    return (
      <p class="notice">The books were not checked yet. The service adds them up every hour.</p>
    );
  return (
    <>
      <PartResult part={books} words={BOOKS} />
      {chains === null ? null : <PartResult part={chains} words={CHAINS} />}
    </>
  );
}

type PartTexts = Readonly<Record<AuditPart["state"], string>>;

const BOOKS: PartTexts = {
  balanced: "The books balance.",
  unbalanced: "The books do not balance.",
  unread: "The books could not be read.",
};
const CHAINS: PartTexts = {
  balanced: "The payment chains agree with the books.",
  unbalanced: "The payment chains do not agree with the books.",
  unread: "Not every payment chain could be read.",
};
const TONES: Readonly<Record<AuditPart["state"], Tone>> = {
  balanced: "good",
  unbalanced: "bad",
  unread: "warn",
};
const RUNNERS: Readonly<Record<AuditPart["run_by"], string>> = {
  service: "by the service itself",
  operator: "by the operator",
  command: "by svc audit",
};

function PartResult({ part, words }: { readonly part: AuditPart; readonly words: PartTexts }) {
  const { state, checked_at, run_by, node, problems, problem_count } = part;
  const unlisted = problem_count - problems.length;
  return (
    <div class={`notice ${TONES[state]}`}>
      {words[state]} Checked <Time at={checked_at} /> {RUNNERS[run_by]}
      {node === null ? "" : ` on node ${node}`}.
      {problems.length === 0 ? null : (
        <ul>
          {problems.map((problem) => (
            <li key={problem} class="wrap-anywhere">
              {problem}
            </li>
          ))}
          {unlisted > 0 ? <li>and {unlisted} more</li> : null}
        </ul>
      )}
    </div>
  );
}

/** The audit that was asked for on this page: it reads everything. */
function Outcome({ ok, checked_at, differences, unread_chains }: Audit) {
  return (
    <div class="stack">
      <Notice tone={ok ? "good" : "bad"}>
        {ok ? "Every amount is accounted for." : "The books do not agree."} Checked{" "}
        <Time at={checked_at} />.
      </Notice>
      {differences.length === 0 ? null : (
        <Table
          name="differences"
          caption="What does not agree"
          columns={DIFFERENCES}
          rows={differences}
          keyOf={(row) => `${row.check} ${row.id}`}
        />
      )}
      {unread_chains.map(({ chain_id, reason }) => (
        <p key={chain_id} class="notice warn">
          Chain {chain_id} could not be read: {reason}
        </p>
      ))}
    </div>
  );
}

const DIFFERENCES: readonly Column<Audit["differences"][number]>[] = [
  column.of("check", "Check", (row) => row.check, "lead"),
  column.of("id", "Of", (row) => <code>{row.id}</code>),
  column.of("is", "Is", (row) => usd(row.is_usd), "number"),
  column.of("should", "Should be", (row) => usd(row.should_be_usd), "number"),
];
