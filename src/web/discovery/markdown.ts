// Pieces of Markdown: tables, their cells, and text that contains no markup.

/** A table, ending with a line break. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return `${[line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}

/** Text as it may stand in a table. */
export function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

/** Text whose angle brackets are no tags. */
export function prose(text: string): string {
  return text.replaceAll("<", "\\<");
}
