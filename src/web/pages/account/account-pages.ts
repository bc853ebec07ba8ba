// The pages for account owners: their routes, limits and error pages. Knows no content of a page.
import type { IncomingMessage } from "node:http";
import type { Logger } from "pino";
import { errorText } from "../../../core/fields.ts";
import type {
  OpenAddressLimit,
  OpenCreationLimit,
} from "../../../core/workers/shared-address-limits.ts";
import { isStoreFailure } from "../../../shared/store/store-failure.ts";
import type { Api, ApiRequest } from "../../api/operation-server.ts";
import { createBound } from "../../http/activity.ts";
import { readBody } from "../../http/body.ts";
import { headersOf } from "../../http/respond.ts";
import { CLAIM_ROUTE } from "./claim-page.ts";
import { CONNECTION_ROUTE } from "./connect-page.ts";
import { notice, type Page, writePage } from "./page.ts";
import type { AccountPageParts, AccountRoute } from "./parts.ts";

export interface AccountPagesParts extends Omit<AccountPageParts, "misses" | "creations"> {
  readonly log: Pick<Logger, "error" | "warn">;
  /** Accounts that one address may create per hour on these pages. */
  readonly keysPerHour: number;
  /** Opens the limits by address. */
  readonly openLimit: OpenAddressLimit;
  /** Opens the limits of new keys. */
  readonly openCreationLimit: OpenCreationLimit;
}

const ROUTES: readonly AccountRoute[] = [CLAIM_ROUTE, CONNECTION_ROUTE];

const HOUR_S = 3_600;
/** Invalid secrets per address. */
const MISSES = { perSecond: 0.2, burst: 10 };
const MAX_UNDER_WAY = 64;
const MAX_READING = 1_024;

/** Creates the pages over a store. */
export function createAccountPages(parts: AccountPagesParts): Api {
  const { keysPerHour, openLimit, openCreationLimit } = parts;
  const account: AccountPageParts = {
    ...parts,
    creations: openCreationLimit("key creations on pages", {
      perSecond: keysPerHour / HOUR_S,
      burst: keysPerHour,
    }),
    misses: openLimit("secrets on pages", MISSES),
  };
  const underWay = createBound(MAX_UNDER_WAY, BUSY);
  const reading = createBound(MAX_READING, BUSY);

  async function pageOf({ request, baseUrl, address }: ApiRequest): Promise<Page | null> {
    const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
    const route = ROUTES.find((candidate) => path.startsWith(candidate.path));
    if (route === undefined) return NOWHERE;
    const secret = path.slice(route.path.length);
    if (request.method === "GET" || request.method === "HEAD")
      return underWay(() => route.show(account, secret, null));
    if (request.method !== "POST") return WRONG_METHOD;
    // Slow senders have a limit of their own, so that they do not use up the limit of requests
    // being served.
    const fields = await reading(() => readForm(request, baseUrl));
    if (!(fields instanceof URLSearchParams)) return fields;
    return underWay(() => route.show(account, secret, { secret, fields, address }));
  }

  return {
    serves: (path) => ROUTES.some((route) => path.startsWith(route.path)),
    handle(arrived) {
      const { request, response, requestId } = arrived;
      request.on("error", () => {});
      const headers = headersOf(requestId, request.headers["x-request-id"]);
      void pageOf(arrived)
        .catch((error: unknown) => failurePage(parts.log, error, requestId))
        .then((page) => {
          request.resume();
          if (page === null) return response.destroy();
          if (page === WRONG_METHOD) headers.push("Allow", "GET, HEAD, POST");
          return writePage(response, headers, page);
        });
    },
  };
}

const NOWHERE = notice(404, "This link leads nowhere", ["It was mistyped or cut off."]);
const WRONG_METHOD = notice(405, "This page is only looked at", ["Open the link in a browser."]);
const BUSY: Page = {
  ...notice(503, "One moment", [
    "The service is busy right now. Nothing was changed. Load the page again in a few seconds.",
  ]),
  retryAfterS: 5,
};

/** The page for an internal failure, which is logged. */
function failurePage(log: AccountPagesParts["log"], error: unknown, requestId: string): Page {
  const isStoreDown = isStoreFailure(error);
  const problem = errorText(error).replace(/svc_([a-z]{2})_\w+/g, "svc_$1_…");
  if (isStoreDown)
    log.warn({ requestId, problem }, "the store does not answer; a page could not be shown");
  else log.error({ requestId, problem }, "bug: a page was not shown");
  return isStoreDown
    ? BUSY
    : notice(500, "Something went wrong", [
        `It is our fault, and nothing was changed as far as we know. Report ${requestId} if ` +
          "it happens again.",
      ]);
}

/**
 * Reads a form sent by one of the account pages, or returns the error page; null = the client left.
 */
async function readForm(
  request: IncomingMessage,
  baseUrl: string,
): Promise<URLSearchParams | Page | null> {
  if (!isOurs(request, baseUrl))
    return notice(403, "This came from somewhere else", [
      "Another site sent this form. Open the link again and use the form on the page itself. " +
        "Nothing was changed.",
    ]);
  const type = request.headers["content-type"] ?? "";
  if (
    !/^application\/x-www-form-urlencoded\s*(;|$)/i.test(type) ||
    request.headers["content-encoding"] !== undefined
  )
    return notice(415, "This is not a form", [
      "Open the link in a browser and use the form on the page. Nothing was changed.",
    ]);
  const bytes = await readBody(request);
  if (bytes === null) return null;
  if ("kind" in bytes)
    return notice(413, "This form is too large", [
      "Open the link again and use the form on the page. Nothing was changed.",
    ]);
  return new URLSearchParams(bytes.toString("utf8"));
}

/**
 * Whether the form comes from one of the account pages, as far as the browser tells. Without TLS it
 * sends no `Sec-Fetch-Site`, and the pages send no referrer. This is safe: pages use only what the
 * form and its URL contain, never cookies or other ambient credentials.
 */
function isOurs({ headers }: IncomingMessage, baseUrl: string): boolean {
  const site = headers["sec-fetch-site"];
  if (typeof site === "string") return site === "same-origin";
  const { origin } = headers;
  return (
    origin === undefined || origin === "null" || origin.toLowerCase() === new URL(baseUrl).origin
  );
}
