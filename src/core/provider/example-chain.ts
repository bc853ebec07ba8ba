// Chooses the chain in the example URL of a profile, so that the URL works without editing.

/**
 * The first chain of a profile that the `fallback` profile serves too, since calls go there when
 * credit has run out; null = there is none.
 */
export function exampleChain(
  served: readonly string[],
  fallback: readonly string[],
): string | null {
  return served.find((name) => fallback.includes(name)) ?? served[0] ?? null;
}
