// Where a request comes from and came to, as far as trusted proxies tell.
import type { IncomingMessage } from "node:http";
import { clientAddress, requestBaseUrl, type TrustedProxies } from "./client-address.ts";
import { type CookieRequest, cookieRequestOf } from "./console-cookie.ts";
import { isLocalCaller } from "./local-caller.ts";

/** Where a request comes from and came to. */
export interface RequestOrigin {
  /** IP address of the caller. */
  readonly address: string;
  /** Base URL of this service as the caller uses it, without a trailing slash. */
  readonly baseUrl: string;
  /** True if the request comes from this machine and not from a page of another origin. */
  readonly isLocal: boolean;
  /** What the request tells of its session in the console. */
  readonly cookie: CookieRequest;
}

/** The origin of a request; `publicUrl` null = its base URL is as it says. */
export function originOf(
  request: IncomingMessage,
  proxies: TrustedProxies,
  publicUrl: string | null,
): RequestOrigin {
  const baseUrl = publicUrl ?? requestBaseUrl(request, proxies);
  const address = clientAddress(request, proxies);
  return {
    baseUrl,
    address,
    isLocal: isLocalCaller(request, { address, baseUrl, publicUrl }),
    cookie: cookieRequestOf(request.headers, { baseUrl, publicUrl }),
  };
}
