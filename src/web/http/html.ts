// HTML that loads nothing and runs no script: escaped templates, whole documents, and the policy
// that allows their style alone.
import { createHash } from "node:crypto";

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

/** Text escaped for element content and for quoted attributes. */
export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

/** Colours and texts of every page. */
const BASE = `
:root { color-scheme: light dark; --page: #f6f6f4; --card: #fff; --sunk: #fafaf8; --line: #e3e3de; --field: #9ba0a8; --text: #1d1f22; --muted: #62676f; --good: #1a7a4c; --bad: #b92f26; --accent: #3a62b8; --on-accent: #fff; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1113; --card: #16191c; --sunk: #101214; --line: #2b3036; --field: #626a75; --text: #e6e8ea; --muted: #9aa1aa; --good: #45b97c; --bad: #f0736a; --accent: #8fb0f5; --on-accent: #0d1524; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
a { color: var(--accent); }
code, .secret { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.92em; overflow-wrap: anywhere; }
`;

/** A kind of pages: what they look like, and the `Content-Security-Policy` that allows it. */
export interface PageStyle {
  readonly css: string;
  readonly policy: string;
}

/** The style of a kind of pages; `allowed`: further directives of their policy. */
export function pageStyle(own: string, allowed: string): PageStyle {
  const css = BASE + own;
  const digest = createHash("sha256").update(css).digest("base64");
  return {
    css,
    policy:
      `default-src 'none'; style-src 'sha256-${digest}'; ${allowed}; base-uri 'none'; ` +
      "frame-ancestors 'none'",
  };
}

/** A whole document; `body` is its main element. */
export function documentOf({ css }: PageStyle, title: string, body: Html): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<style>${raw(css)}</style>
</head>
<body>
<main>
${body}
</main>
</body>
</html>
`.text;
}

/** Text that is HTML already. */
export function raw(text: string): Html {
  return { kind: "html", text };
}
