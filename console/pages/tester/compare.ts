// The answers of several providers to one call, grouped by equality; the largest group is what the
// others are compared with. Pure.

/** What one provider answered, as the API tells it. */
export interface ComparedResult {
  readonly provider: string;
  readonly outcome: "answer" | "error" | "skipped";
  readonly digest: string | null;
}

/** Which group an answer is in, counted from 0; null = it is no answer. */
export function groupsOf(results: readonly ComparedResult[]): readonly (number | null)[] {
  const sizes = new Map<string, number>();
  for (const { outcome, digest } of results)
    if (outcome === "answer" && digest !== null) sizes.set(digest, (sizes.get(digest) ?? 0) + 1);
  const largestFirst = [...sizes].sort(([, one], [, other]) => other - one).map(([key]) => key);
  return results.map(({ outcome, digest }) =>
    outcome === "answer" && digest !== null ? largestFirst.indexOf(digest) : null,
  );
}
