// Measures how the error classifier judges shapes that it was not written from:
// `npm run generalisation [-- SEED]`. Rules that were written from nothing but the judged rows are
// off, once by random splits and once by leaving out one vendor after another.
import {
  CORPUS,
  RECORDED,
  type Recorded,
  type Score,
  SHAPES,
  type Strictness,
  scoreUnseen,
} from "./recorded.ts";
import { listsOf, splitsOf, vendorsOf } from "./splits.ts";

const seed = Number(process.argv[2] ?? 1);
const SPLITS = 20;
const SHARE = 0.2;

console.log(
  `${CORPUS.length} recorded provider errors and ${SHAPES.length} further shapes; seed ${seed}`,
);
for (const strictness of ["rule", "phrase"] as const) {
  report(
    `random fifths, ${SPLITS} times, ${strictness} by ${strictness}`,
    splitsOf(RECORDED, { count: SPLITS, share: SHARE, seed }),
    strictness,
  );
  report(`vendor after vendor, ${strictness} by ${strictness}`, vendorsOf(RECORDED), strictness);
  report(
    `list after list of other people, ${strictness} by ${strictness}`,
    listsOf(RECORDED),
    strictness,
  );
}

function report(
  title: string,
  splits: readonly (readonly Recorded[])[],
  strictness: Strictness,
): void {
  const scores = splits.map((judged) => scoreUnseen(judged, strictness));
  const judged = sum(scores, (score) => score.judged);
  const right = sum(scores, (score) => score.right);
  const wrong = [...new Set(scores.flatMap((score) => score.wrong))].sort((a, b) => a - b);
  console.log(
    `${title}: ${((100 * right) / judged).toFixed(1)} % of ${judged} right; otherwise at least ` +
      `once: ${wrong.join(", ") || "none"}`,
  );
}

function sum(scores: readonly Score[], of: (score: Score) => number): number {
  return scores.reduce((total, score) => total + of(score), 0);
}
