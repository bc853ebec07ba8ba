// Reads forms of the account pages, bounded, and only if one of these pages sent them. Knows no
// field.
import type { IncomingMessage } from "node:http";
import { readBody } from "../../http/body.ts";
import { notice, type Page } from "./page.ts";

/** The fields of a form. */
export type Form = URLSearchParams;

/**
 * Reads a form sent by one of the account pages, or returns the error page; null = the client left.
 */
export async function readForm(
  request: IncomingMessage,
  baseUrl: string,
): Promise<Form | Page | null> {
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
