// Forms of pages for people: read within bounds, and only from our own pages. Knows no field.
import type { IncomingMessage } from "node:http";
import { readBody } from "../../http/body.ts";
import { notice, type Page } from "./page.ts";

/** The fields of a form. */
export type Form = URLSearchParams;

/**
 * Reads a form that one of our pages sent; or the page that says why not; null = nobody is there
 * any more.
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
 * Whether a browser sent this from one of our pages. Where a browser does not say (without TLS it
 * says nothing, and our pages hide where they are), nothing is lost: no page acts on what a browser
 * adds by itself, only on what is in the form and in its address.
 */
function isOurs({ headers }: IncomingMessage, baseUrl: string): boolean {
  const site = headers["sec-fetch-site"];
  if (typeof site === "string") return site === "same-origin";
  const { origin } = headers;
  return (
    origin === undefined || origin === "null" || origin.toLowerCase() === new URL(baseUrl).origin
  );
}
