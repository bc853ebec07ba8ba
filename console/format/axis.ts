// Texts at the axis of a graph.

const EMPTY_DECIMALS = /\.0+(?!\d)/;

/** Values at the axis, without decimals where none of them has any. */
export function axisTexts(values: readonly number[], format: (value: number) => string): string[] {
  const texts = values.map(format);
  const isWhole = values.every(
    (value, at) => value === 0 || !/\.\d/.test((texts[at] ?? "").replace(EMPTY_DECIMALS, "")),
  );
  return texts.map((text, at) =>
    isWhole || values[at] === 0 ? text.replace(EMPTY_DECIMALS, "") : text,
  );
}
