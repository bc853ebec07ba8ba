// Credentials in the URL of a provider: the HTTP client ignores them there, so they become a
// header. Knows nothing of the rest of the configuration.

/**
 * A URL without credentials, and the `Authorization` header value that stands for them; both
 * secret.
 */
export interface SplitUrl {
  readonly url: string;
  readonly authorization: string | null;
}

/**
 * Splits `https://user:password@host` apart; null where the text is no URL or its escapes are
 * broken. A URL without credentials stays as written.
 */
export function splitCredentials(text: string): SplitUrl | null {
  const parsed = URL.parse(text);
  if (parsed === null) return null;
  if (parsed.username === "" && parsed.password === "") return { url: text, authorization: null };
  const credentials = decoded(`${parsed.username}:${parsed.password}`);
  if (credentials === null) return null;
  parsed.username = "";
  parsed.password = "";
  return {
    url: parsed.href,
    authorization: `Basic ${Buffer.from(credentials).toString("base64")}`,
  };
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
