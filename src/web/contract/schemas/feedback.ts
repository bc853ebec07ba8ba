// Schemas of feedback: the report of a caller, and the list for the operator.
import { z } from "zod";

const MAX_MESSAGE_CHARS = 4_000;
const CATEGORIES = ["docs", "api", "payment", "routing", "rpc", "dashboard", "other"] as const;
const category = z.enum(CATEGORIES);
const feedbackId = z.string().regex(/^fbk_[0-9a-z]{20}$/);

/** Counts Unicode code points, as JSON Schema does; JavaScript counts UTF-16 units. */
const message = z
  .string()
  .min(1)
  .refine((text) => text.length <= 2 * MAX_MESSAGE_CHARS && [...text].length <= MAX_MESSAGE_CHARS)
  .meta({ maxLength: MAX_MESSAGE_CHARS })
  .describe(
    "What you want to say. Anything that looks like a key, a token or a URL with a credential " +
      "is taken out before it is stored.",
  );

/** Body of `submitFeedback`. */
export const feedbackRequest = z
  .strictObject({
    message,
    category: category.optional().describe("What it is about."),
    request_id: z
      .string()
      .regex(/^req-[0-9a-z]{1,20}(-[0-9a-z]{1,12}){0,2}$/)
      .optional()
      .describe("`x-svc-request-id` of an answer that it is about."),
    operation: z
      .string()
      .regex(/^[a-z][A-Za-z]{1,40}$/)
      .optional()
      .describe("`operationId` of the operation that it is about, as /openapi.json names it."),
  })
  .meta({ id: "FeedbackRequest", description: "A report to the operator." });

/** Answer of `submitFeedback`. */
export const feedbackReceipt = z
  .object({ id: feedbackId })
  .meta({ id: "FeedbackReceipt", description: "That a report was stored." });

/** Query of `listFeedback`. */
export const feedbackQuery = z.object({
  limit: z.int().min(1).max(500).default(100).describe("Most reports in one answer."),
  after: feedbackId.optional().describe("`next` of the answer before."),
});

/** Answer of `listFeedback`. */
export const feedbackList = z
  .object({
    feedback: z
      .array(
        z.object({
          id: feedbackId,
          created_at: z.iso.datetime(),
          account_id: z
            .string()
            .nullable()
            .describe("Of the credential it was sent with; null = none was."),
          category: category.nullable(),
          request_id: z.string().nullable(),
          operation: z.string().nullable(),
          message: z.string().describe("Without what looked like a secret."),
        }),
      )
      .describe("The newest first."),
    next: feedbackId.nullable().describe("Pass it as `after` to read on; null = that was all."),
  })
  .meta({ id: "FeedbackList", description: "What people told the operator." });

/** The category in a row of the store; an unknown one becomes `other`. */
export function categoryOf(text: string | null): z.output<typeof category> | null {
  return text === null ? null : (CATEGORIES.find((known) => known === text) ?? "other");
}
