// Markup that cannot be broken out of: every value put into it is escaped as text, unless it is
// markup made here. Knows no page.

/** A piece of markup. */
export interface Html {
  readonly kind: "html";
  readonly text: string;
}

/** What may be put into markup; null = nothing. */
export type Piece = Html | string | number | null | readonly Html[];

/** Markup from a template; texts in it are escaped, between tags as in quoted attributes. */
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
