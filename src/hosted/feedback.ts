// Feedback reports to the operator: redacted, and deleted when there are too many. Knows no
// credential and no rate limit.
import { redact } from "../core/redact/redact.ts";
import { newId } from "../secrets/secret.ts";
import type { Store } from "../shared/store/store.ts";
import type { FeedbackTable } from "../shared/store/tables.ts";
import { dropOldest } from "./operator/stored-records.ts";

/** A report. */
export interface Feedback {
  /** May hold secrets until it is added. */
  readonly message: string;
  readonly category: string | null;
  readonly requestId: string | null;
  readonly operation: string | null;
  /** Of the credential it came with; null = none did. */
  readonly accountId: string | null;
}

/** Most reports that are kept; the oldest go first. */
const MAX_FEEDBACK = 10_000;

/**
 * Adds a report, without what looks like a secret in its message, and deletes the oldest beyond
 * `maxKept`. Returns its id.
 */
export async function addFeedback(
  store: Store,
  report: Feedback,
  nowMs: number,
  maxKept: number = MAX_FEEDBACK,
): Promise<string> {
  const id = newId("fbk", nowMs);
  const message = redact(report.message.toWellFormed());
  const row = {
    id,
    account_id: report.accountId,
    category: report.category,
    request_id: report.requestId,
    operation: report.operation,
    message,
    created_at: BigInt(nowMs),
  };
  await store.transaction(async (tx) => {
    await tx.insertInto("feedback").values(row).execute();
    await dropOldest(tx, "feedback", maxKept);
  });
  return id;
}

/** Some of the reports, the newest first. */
export interface FeedbackPage {
  readonly reports: readonly FeedbackTable[];
  /** Where the next page begins; null = there is none. */
  readonly next: string | null;
}

/** Reads reports, the newest first, those that are older than `after`. */
export async function readFeedback(
  { db }: Store,
  { limit, after }: { readonly limit: number; readonly after?: string | undefined },
): Promise<FeedbackPage> {
  const rows = await db
    .selectFrom("feedback")
    .selectAll()
    .$if(after !== undefined, (query) => query.where("id", "<", after ?? ""))
    .orderBy("id", "desc")
    .limit(limit + 1)
    .execute();
  const reports = rows.slice(0, limit);
  return { reports, next: rows.length > limit ? (reports.at(-1)?.id ?? null) : null };
}
