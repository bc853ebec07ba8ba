// The difference of two texts by lines: what both have, what only the first has, what only the
// second has. Bounded: of long texts whose middle differs, the middle is told as replaced.

/** A line and where it stands. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Cells of the table that finds the longest common lines. */
const MAX_CELLS = 1_000_000;

/** The lines of both texts, in order. */
export function lineDiff(before: string, after: string): readonly DiffLine[] {
  const left = before.split("\n");
  const right = after.split("\n");
  const head = commonLength(left, right, (lines, at) => lines[at]);
  const restLeft = left.slice(head);
  const restRight = right.slice(head);
  const tail = commonLength(restLeft, restRight, (lines, at) => lines[lines.length - 1 - at]);
  const middleLeft = restLeft.slice(0, restLeft.length - tail);
  const middleRight = restRight.slice(0, restRight.length - tail);
  return [
    ...left.slice(0, head).map(same),
    ...middleDiff(middleLeft, middleRight),
    ...restLeft.slice(restLeft.length - tail).map(same),
  ];
}

/** Whether two texts differ by any line. */
export function differs(lines: readonly DiffLine[]): boolean {
  return lines.some(({ kind }) => kind !== "same");
}

function same(text: string): DiffLine {
  return { kind: "same", text };
}

function commonLength(
  left: readonly string[],
  right: readonly string[],
  lineAt: (lines: readonly string[], at: number) => string | undefined,
): number {
  const most = Math.min(left.length, right.length);
  let length = 0;
  while (length < most && lineAt(left, length) === lineAt(right, length)) length++;
  return length;
}

function middleDiff(left: readonly string[], right: readonly string[]): readonly DiffLine[] {
  const replaced = [
    ...left.map((text): DiffLine => ({ kind: "removed", text })),
    ...right.map((text): DiffLine => ({ kind: "added", text })),
  ];
  if (left.length * right.length > MAX_CELLS) return replaced;
  const lengths = commonLengths(left, right);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < left.length && j < right.length) {
    const [text = "", added = ""] = [left[i], right[j]];
    const isSame = text === added;
    const isRemoved = (lengths[i + 1]?.[j] ?? 0) >= (lengths[i]?.[j + 1] ?? 0);
    if (isSame) lines.push(same(text));
    else lines.push(isRemoved ? { kind: "removed", text } : { kind: "added", text: added });
    if (isSame || isRemoved) i++;
    if (isSame || !isRemoved) j++;
  }
  const rest = replaced.filter((_, at) => (at < left.length ? at >= i : at - left.length >= j));
  return [...lines, ...rest];
}

/** Lengths of the longest common lines of what is left from each place on. */
function commonLengths(left: readonly string[], right: readonly string[]): readonly Uint32Array[] {
  const table = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i--) {
    const [row, below] = [table[i], table[i + 1]];
    if (row === undefined || below === undefined) continue;
    for (let j = right.length - 1; j >= 0; j--)
      row[j] =
        left[i] === right[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
  }
  return table;
}
