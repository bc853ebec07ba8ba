// Where an instance is reached, as documents write it.

/** The addresses of an instance, without a slash at the end. */
export interface Site {
  readonly baseUrl: string;
  /** The same for WebSockets. */
  readonly socketUrl: string;
}

/** The site at a base URL. */
export function siteOf(baseUrl: string): Site {
  return { baseUrl, socketUrl: baseUrl.replace(/^http/, "ws") };
}
