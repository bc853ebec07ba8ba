// The cookie of a session in the console: its name and attributes, and whether a request with it
// comes from a page of this service. Knows no session.
import type { IncomingHttpHeaders } from "node:http";
import { isLoopbackName, isOwnOrigin } from "./local-caller.ts";

/**
 * How this service was reached. `secure`: over https. `loopback`: over http at a name of this
 * machine. Anywhere else a cookie could be read on the way, so there is none.
 */
export type CookieForm = "secure" | "loopback";

/** What a request tells about the session that it belongs to. */
export interface CookieRequest {
  /** Null = sessions are not available here. */
  readonly form: CookieForm | null;
  /** The id in the cookie; null = the request has no cookie of the console. */
  readonly id: string | null;
  /** Whether a page of this service sent it, as far as the browser says. */
  readonly isSameOrigin: boolean;
  /** Whether its body is declared as JSON, which a form of a foreign page cannot send. */
  readonly isJson: boolean;
}

/** Where a request came to. */
export interface CookiePlace {
  /** Base URL of this service as the caller uses it. */
  readonly baseUrl: string;
  /** Null = not configured, and `baseUrl` comes from the caller. */
  readonly publicUrl: string | null;
}

const NAMES: Readonly<Record<CookieForm, string>> = {
  secure: "__Host-svc",
  loopback: "svc-session",
};
const MAX_COOKIE_CHARS = 16_384;
const MAX_COOKIES = 200;

/** Reads what a request says of its session. */
export function cookieRequestOf(headers: IncomingHttpHeaders, place: CookiePlace): CookieRequest {
  const form = formOf(place.baseUrl);
  return {
    form,
    id: form === null ? null : cookieOf(headers.cookie, NAMES[form]),
    isSameOrigin: isSameOrigin(headers, place),
    isJson: /^application\/json *(?:;|$)/i.test(headers["content-type"] ?? ""),
  };
}

/** Whether a request carries a cookie of the console, whether it is valid or not. */
export function hasConsoleCookie(cookie: string | undefined): boolean {
  return (
    cookie !== undefined && Object.values(NAMES).some((name) => cookieOf(cookie, name) !== null)
  );
}

/** The `Set-Cookie` that begins a session; `id` null = that ends it. */
export function setCookie(form: CookieForm, id: string | null, maxAgeS: number): string {
  const secure = form === "secure" ? "; Secure" : "";
  const age = id === null ? 0 : maxAgeS;
  return `${NAMES[form]}=${id ?? ""}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${age}${secure}`;
}

function formOf(baseUrl: string): CookieForm | null {
  const url = URL.parse(baseUrl);
  if (url === null) return null;
  if (url.protocol === "https:") return "secure";
  return isLoopbackName(url.hostname) ? "loopback" : null;
}

function cookieOf(header: string | undefined, name: string): string | null {
  if (header === undefined || header.length > MAX_COOKIE_CHARS) return null;
  for (const pair of header.split(";", MAX_COOKIES)) {
    const at = pair.indexOf("=");
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim() || null;
  }
  return null;
}

/** `Sec-Fetch-Site` decides where the browser sends it, else `Origin`. */
function isSameOrigin(headers: IncomingHttpHeaders, { baseUrl, publicUrl }: CookiePlace): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin";
  return isOwnOrigin(headers.origin, { baseUrl, publicUrl });
}
