// One call of a caller is one call to a provider, as it was written: most walks count and read what
// reaches a provider.

/** Settings of a configuration without a cache, shared calls, hedges and resolved tags. */
export const PLAIN_ROUTING = {
  cache: "off",
  coalesce: "off",
  hedge: "off",
  consistency: "off",
} as const;

/** The same configuration with these settings, where it says nothing of them. */
export function withPlainRouting(text: string): string {
  if (!text.startsWith("{")) return text;
  const file: Record<string, unknown> = JSON.parse(text);
  return JSON.stringify({ ...PLAIN_ROUTING, ...file });
}
