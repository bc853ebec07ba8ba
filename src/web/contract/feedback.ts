// Rows of the contract: feedback, sent by anyone and read by the operator.
import * as shape from "./schemas/feedback.ts";

/** Operations of feedback. */
export const FEEDBACK_OPERATIONS = {
  submitFeedback: {
    method: "POST",
    path: "/api/v1/feedback",
    tag: "agent",
    summary: "Tell the operator something",
    description:
      "Needs no credential. Secrets are taken out before it is stored; nobody but the operator " +
      "can read it. Ten an hour for each credential or address.",
    auth: ["none", "management_token", "rpc_key"],
    servedBy: "api",
    params: null,
    query: null,
    body: shape.feedbackRequest,
    answers: { 202: { description: "It is stored.", schema: shape.feedbackReceipt } },
    faults: [
      "invalid_request",
      "body_too_large",
      "unsupported_media_type",
      "invalid_field",
      "unknown_field",
      "unauthorized",
      "forbidden",
      "rate_limited",
      "internal",
      "unavailable",
    ],
    idempotent: false,
  },
  listFeedback: {
    method: "GET",
    path: "/api/v1/operator/feedback",
    tag: "operator",
    summary: "Read what people said",
    description:
      "The newest first, by pages; the newest 10,000 are kept. Needs the configured operator token.",
    auth: ["operator"],
    servedBy: "api",
    params: null,
    query: shape.feedbackQuery,
    body: null,
    answers: { 200: { description: "The reports.", schema: shape.feedbackList } },
    faults: ["unauthorized", "invalid_field", "internal", "unavailable"],
    idempotent: true,
  },
} as const;
