// Sections of documents: each has text for people and agents, and live values for programs. One
// renderer writes the texts of some sections as Markdown, one their values as JSON.

/** A part of a JSON document. */
export type Json = Readonly<Record<string, unknown>>;

/** What is told of one thing. */
export interface Section {
  /** The heading above its text. */
  readonly title?: string;
  /** Paragraphs, lists, tables and blocks of code, in Markdown; absent = it has values only. */
  readonly text?: readonly string[];
  /** Members of `/agent.json`; absent = it has text only. */
  readonly values?: Json;
  /** Whether `/llms.txt` has its text as well. */
  readonly isBrief?: true;
}

/** The texts of sections below an introduction. */
export function markdownOf(introduction: readonly string[], sections: readonly Section[]): string {
  const parts = sections.flatMap(({ title, text = [] }) =>
    text.length === 0 ? [] : [`## ${title}`, ...text],
  );
  return `${[...introduction, ...parts].join("\n\n")}\n`;
}

/** The values of all sections as one object. */
export function valuesOf(sections: readonly Section[]): Json {
  return Object.assign({}, ...sections.map(({ values = {} }) => values));
}

/** A step of a guide: its purpose and its shell commands. */
export interface GuideStep {
  readonly title: string;
  readonly shell: string;
  readonly note: string;
}

/** Steps in their order, as one part each. */
export function numbered(steps: readonly GuideStep[]): readonly string[] {
  return steps.map(
    ({ title, shell, note }, i) => `### ${i + 1}. ${title}\n\n${code("sh", shell)}\n\n${note}`,
  );
}

/** A block of code. */
export function code(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

/** Texts as a list. */
export function bullets(texts: readonly string[]): string {
  return texts.map((text) => `- ${text}`).join("\n");
}

/** Names as code, one after the other. */
export function named(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

/** A table. */
export function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |`;
  return [line(heads), line(heads.map(() => "---")), ...rows.map(line)].join("\n");
}

/** Text escaped for a table cell. */
export function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

/** Text with escaped angle brackets. */
export function prose(text: string): string {
  return text.replaceAll("<", "\\<");
}
