// Moves credentials from a provider's URL into a header, since the HTTP client ignores them in
// URLs. Knows nothing of the rest of the configuration.

/**
 * A URL without its credentials, and the `Authorization` header value that carries them; both
 * secret.
 */
export interface SplitUrl {
  readonly url: string;
  readonly authorization: string | null;
}

/**
 * Splits `https://user:password@host`; null = the text is not a URL or its escapes are broken. A
 * URL without credentials stays as written.
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
