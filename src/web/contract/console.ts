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

const OPERATOR = {
  ...NOTHING,
  tag: "operator",
  servedBy: "instance",
  auth: ["operator"],
} as const;
const CORDONS = "/api/v1/operator/cordons";
const CHANGE = [...BODY, "unauthorized", "forbidden", "not_found", ...ANY] as const;

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
  listCordons: {
    ...OPERATOR,
    method: "GET",
    path: CORDONS,
    summary: "List the providers that operators took out of use",
    description: "Also those that the configuration does not have any more.",
    answers: { 200: { description: "The cordons.", schema: shape.cordonList } },
    faults: ["unauthorized", ...ANY],
    idempotent: true,
  },
  cordonProvider: {
    ...OPERATOR,
    method: "POST",
    path: CORDONS,
    summary: "Take a provider out of use",
    description:
      "Nothing but probes is sent to it, not even by a pin, until it is put back; calls under way " +
      "finish, subscriptions move. Holds at every worker and node, and over reloads and restarts. " +
      "Again: replaces the reason.",
    body: shape.cordonRequest,
    answers: { 200: { description: "It is out of use.", schema: shape.operatorCordon } },
    faults: CHANGE,
    idempotent: true,
  },
  uncordonProvider: {
    ...OPERATOR,
    method: "DELETE",
    path: CORDONS,
    summary: "Put a provider back to use",
    description: "Also one that is in use, or unknown: then nothing changes.",
    query: shape.cordonQuery,
    answers: { 204: { description: "It is in use.", schema: null } },
    faults: ["unauthorized", "forbidden", "unknown_field", "invalid_field", ...ANY],
    idempotent: true,
  },
  endProviderWait: {
    ...OPERATOR,
    method: "POST",
    path: "/api/v1/operator/waits/end",
    summary: "End the waits of a provider",
    description:
      "An open circuit is half-open now, and what refusals of the provider began (limits of its " +
      "rate, credentials, quota) no longer holds. Holds at every worker and node.",
    body: shape.providerRequest,
    answers: { 200: { description: "The circuits.", schema: shape.endedWaits } },
    faults: CHANGE,
    idempotent: true,
  },
  testProvider: {
    ...OPERATOR,
    method: "POST",
    path: "/api/v1/operator/tests",
    summary: "Test a provider now",
    description:
      "Asks it for chain id and height on each transport, within its limits; a good answer counts " +
      "as a probe. Ten a minute.",
    body: shape.providerRequest,
    answers: { 200: { description: "What it answered.", schema: shape.providerTest } },
    faults: [...CHANGE, "rate_limited"],
    idempotent: true,
  },
  compareProviders: {
    ...OPERATOR,
    method: "POST",
    path: "/api/v1/operator/compare",
    summary: "Ask every provider the same",
    description:
      "Sends one read to every provider of a profile on a chain, within their limits. Ten a " +
      "minute; each has ten seconds, and a result of more than 64 KiB is told by its digest.",
    body: shape.compareRequest,
    answers: { 200: { description: "The answers.", schema: shape.comparison } },
    faults: [...CHANGE, "rate_limited"],
    idempotent: true,
  },
  reloadConfiguration: {
    ...OPERATOR,
    method: "POST",
    path: "/api/v1/operator/reload",
    summary: "Reload the configuration",
    description:
      "As `SIGHUP` does. Where it succeeds, the other nodes of a cluster reload as well, each its " +
      "own file; `GET /api/v1/operator/actions` has a line of each, with the revision.",
    answers: { 200: { description: "Whether it was reloaded.", schema: shape.reloaded } },
    faults: ["unauthorized", "forbidden", ...ANY],
    idempotent: true,
  },
  listActions: {
    ...OPERATOR,
    method: "GET",
    path: "/api/v1/operator/actions",
    summary: "Read what operators did",
    description:
      "A line for each change and sign-in, the newest first; 10,000 are kept in the store, 1,000 " +
      "without one.",
    query: shape.actionQuery,
    answers: { 200: { description: "The actions.", schema: shape.actionList } },
    faults: ["unauthorized", "invalid_field", ...ANY],
    idempotent: true,
  },
} as const satisfies Readonly<Record<string, Operation>>;
