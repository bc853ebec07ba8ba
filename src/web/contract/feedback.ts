// Feedback, sent by anyone and read by the operator.

import type { z } from "zod";
import { instant } from "../../hosted/keys/key-fields.ts";
import { answer, type OperationRows, operations } from "./operation.ts";
import { idOf, is, next, oneOf, paged, pattern, record, request, rows } from "./shapes.ts";

const MAX_MESSAGE_CHARS = 4_000;

const CATEGORIES = ["docs", "api", "payment", "routing", "rpc", "dashboard", "other"] as const;

const category = oneOf(CATEGORIES);

const feedbackId = idOf("fbk");

/** Counts Unicode code points, as JSON Schema does; JavaScript counts UTF-16 units. */
const message = is.text
  .min(1)
  .refine((sent) => sent.length <= 2 * MAX_MESSAGE_CHARS && [...sent].length <= MAX_MESSAGE_CHARS)
  .meta({ maxLength: MAX_MESSAGE_CHARS })
  .describe(
    "What you want to say. Anything that looks like a key, a token or a URL with a credential is " +
      "taken out before it is stored.",
  );

/** Body of `submitFeedback`. */
const feedbackRequest = request({
  message,
  category: category.optional().describe("What it is about."),
  request_id: pattern(/^req-[0-9a-z]{1,20}(-[0-9a-z]{1,12}){0,2}$/)
    .optional()
    .describe("`x-svc-request-id` of an answer that it is about."),
  operation: pattern(/^[a-z][A-Za-z]{1,40}$/)
    .optional()
    .describe("`operationId` of the operation that it is about, as /openapi.json names it."),
}).meta({ id: "FeedbackRequest", description: "A report to the operator." });

/** Answer of `submitFeedback`. */
const feedbackReceipt = record({ id: feedbackId }).meta({
  id: "FeedbackReceipt",
  description: "That a report was stored.",
});

/** Answer of `listFeedback`. */
const feedbackList = record({
  feedback: rows({
    id: feedbackId,
    created_at: instant,
    account_id: is.textOrNull.describe("Of the credential it was sent with; null = none was."),
    category: category.nullable(),
    request_id: is.textOrNull,
    operation: is.textOrNull,
    message: is.text.describe("Without what looked like a secret."),
  }).describe("The newest first."),
  next: next(feedbackId),
}).meta({ id: "FeedbackList", description: "What people told the operator." });

/** The category in a row of the store; an unknown one becomes `other`. */
export function categoryOf(stored: string | null): z.output<typeof category> | null {
  return stored === null ? null : (CATEGORIES.find((each) => each === stored) ?? "other");
}

/** Operations of feedback. */
export const FEEDBACK_OPERATIONS = operations({ tag: "operator", auth: ["operator"] }, {
  submitFeedback: {
    endpoint: "POST /api/v1/feedback",
    tag: "agent",
    summary: "Tell the operator something",
    description:
      "Needs no credential. Secrets are taken out before it is stored; nobody but the operator " +
      "can read it. Ten an hour for each credential or address.",
    auth: ["none", "management_token", "rpc_key"],
    body: feedbackRequest,
    answers: { 202: answer("It is stored.", feedbackReceipt) },
  },
  listFeedback: {
    endpoint: "GET /api/v1/operator/feedback",
    summary: "Read what people said",
    description:
      "The newest first, by pages; the newest 10,000 are kept. Needs the configured operator token.",
    query: record(paged(feedbackId, 500, 100, "reports")),
    answers: { 200: answer("The reports.", feedbackList) },
  },
} as const satisfies OperationRows);
