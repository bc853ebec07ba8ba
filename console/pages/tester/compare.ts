// The answers of several providers to one call, grouped by equality; the largest group is what the
// others are compared with. Pure.

import type { AnswerOf } from "../../api/contract-types.ts";
import { textList } from "../../format/text.ts";
import type { Tone } from "../../format/tone.ts";

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

/** What came of a comparison, and how good that is. An error is no answer. */
export function comparisonText(results: readonly ComparedResult[]): {
  readonly tone: Tone;
  readonly text: string;
} {
  const groups = groupsOf(results);
  const answered = groups.filter((group) => group !== null).length;
  const alike = groups.filter((group) => group === 0).length;
  const ended = (outcome: Result["outcome"]): number =>
    results.filter((result) => result.outcome === outcome).length;
  const [failed, skipped] = [ended("error"), ended("skipped")];
  const facts = [
    answered === 0 && "No provider answered",
    alike === 1 && answered === 1 && "1 answered",
    alike > 1 && `${alike} answered alike`,
    alike === 1 && answered > 1 && `${answered} answered, each differently`,
    alike > 1 && answered > alike && `${answered - alike} differently`,
    failed > 0 && `${failed} failed`,
    skipped > 0 && `${skipped} not asked`,
  ];
  const isAlike = alike > 1 && alike === answered && failed === 0;
  const tone = isAlike ? "good" : "warn";
  return { tone: answered === 0 ? "bad" : tone, text: `${textList(facts)}.` };
}
