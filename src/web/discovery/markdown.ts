// Builds Markdown: tables, cells, and escaped text.

/** A table, with a final line break. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return `${[line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n")}\n`;
}

/** Text escaped for a table cell. */
export function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

/** Text with escaped angle brackets. */
export function prose(text: string): string {
  return text.replaceAll("<", "\\<");
}
