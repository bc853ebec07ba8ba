// Which chain a ready-made URL of a profile names, so that it works as it stands.

/**
 * One of the chains that a profile serves: the first that `fallback` serves too, where calls go
 * when nothing is left to pay with; null = there is none.
 */
export function exampleChain(
  served: readonly string[],
  fallback: readonly string[],
): string | null {
  return served.find((name) => fallback.includes(name)) ?? served[0] ?? null;
}
