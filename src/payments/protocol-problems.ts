// The problem types of MPP that this service answers with: codes and titles as its library has
// them. Loads no library, so that callers need not either.

/** Last parts of MPP's problem types, and their titles. */
export const PROBLEMS = {
  "payment-required": "Payment Required",
  "malformed-credential": "Malformed Credential",
  "invalid-challenge": "Invalid Challenge",
  "invalid-payload": "Invalid Payload",
  "verification-failed": "Verification Failed",
  "payment-expired": "Payment Expired",
  "payment-insufficient": "Payment Insufficient",
  "method-unsupported": "Method Unsupported",
  "internal-payment-error": "Internal Payment Error",
} as const;

/** Last part of a problem type. */
export type ProblemCode = keyof typeof PROBLEMS;

/** `type` and `title` of MPP's problem details; an unknown code is a failed verification. */
export function problemDetails(code: string): { readonly type: string; readonly title: string } {
  const known = isProblem(code) ? code : "verification-failed";
  return { type: `https://paymentauth.org/problems/${known}`, title: PROBLEMS[known] };
}

function isProblem(code: string): code is ProblemCode {
  return Object.hasOwn(PROBLEMS, code);
}
