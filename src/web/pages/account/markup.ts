// A template tag for HTML: every interpolated value is escaped, unless the tag itself made it.
// Knows no page.

/** Escaped HTML. */
export interface Html {
  readonly kind: "html";
  readonly text: string;
}

/** A value that can be interpolated; null = nothing. */
export type Piece = Html | string | number | null | readonly Html[];

/**
 * HTML from a template. Interpolated texts are escaped for element content and for quoted
 * attributes.
 */
export function html(parts: TemplateStringsArray, ...pieces: readonly Piece[]): Html {
  const text = parts.reduce((sum, part, index) => sum + textOf(pieces[index - 1] ?? null) + part);
  return { kind: "html", text };
}

function textOf(piece: Piece): string {
  if (piece === null) return "";
  if (typeof piece === "string" || typeof piece === "number") return escaped(String(piece));
  return "kind" in piece ? piece.text : piece.map((part) => part.text).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
