// Rows of the contract: sessions in the console, and what operators do with providers.
import type { Operation } from "./operation.ts";
import * as shape from "./schemas/console.ts";

const NOTHING = { params: null, query: null, body: null } as const;
const ANY = ["internal", "unavailable"] as const;
const BODY = [
  "invalid_request",
  "body_too_large",
  "unsupported_media_type",
  "invalid_field",
  "unknown_field",
] as const;
const SESSION = {
  ...NOTHING,
  path: "/api/v1/console/session",
  tag: "console",
  servedBy: "instance",
  auth: ["none"],
} as const;

/** Operations of the console. */
export const CONSOLE_OPERATIONS = {
  getSession: {
    ...SESSION,
    method: "GET",
    summary: "Ask who is signed in",
    description:
      "By the cookie of the request. A cookie whose session has ended is taken away. Also tells " +
      "what the instance offers to those who sign in.",
    answers: { 200: { description: "The session, or none.", schema: shape.consoleSession } },
    faults: ANY,
    idempotent: true,
  },
  signIn: {
    ...SESSION,
    method: "POST",
    summary: "Sign in to the console",
    description:
      "Sets a cookie for 12 hours that scripts cannot read: `__Host-svc` over https, `svc-session` " +
      "over http on this machine; elsewhere nobody can sign in. The session ends with its token. " +
      "From pages of this service only, ten tries a minute and address. The cookie opens what the " +
      "token opens under /api/v1, and no calls; with it, changes need `Content-Type: " +
      "application/json` and a browser that says `Sec-Fetch-Site: same-origin`, or an `Origin` " +
      "that is this service.",
    body: shape.signInRequest,
    answers: { 201: { description: "The session.", schema: shape.consoleSession } },
    faults: [...BODY, "unauthorized", "forbidden", "rate_limited", ...ANY],
    idempotent: false,
  },
  signOut: {
    ...SESSION,
    method: "DELETE",
    summary: "Sign out of the console",
    description: "Ends the session of the cookie, if there is one, and takes the cookie away.",
    answers: { 204: { description: "Nobody is signed in.", schema: null } },
    faults: ["forbidden", ...ANY],
    idempotent: true,
  },
} as const satisfies Readonly<Record<string, Operation>>;
