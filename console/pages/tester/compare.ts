// The answers of several providers to one call, grouped by equality; the largest group is what the
// others are compared with. Pure.

import type { AnswerOf } from "../../api/contract-types.ts";

/** What one provider answered. */
type Result = AnswerOf<"POST /api/v1/operator/compare">["results"][number];
type ComparedResult = Pick<Result, "provider" | "outcome" | "digest">;

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
