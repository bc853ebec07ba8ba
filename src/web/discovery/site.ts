// The base URLs of an instance in documents.

/** The base URLs of an instance, without a trailing slash. */
export interface Site {
  readonly baseUrl: string;
  /** The base URL for WebSockets. */
  readonly socketUrl: string;
}

/** The site at a base URL. */
export function siteOf(baseUrl: string): Site {
  return { baseUrl, socketUrl: baseUrl.replace(/^http/, "ws") };
}
