// Renders a Markdown document as an HTML page, with a library that is imported at the first
// request. The page loads nothing and runs no script.
import { createHash } from "node:crypto";

const STYLE = `
:root { color-scheme: light dark; --page: #f6f6f4; --sunk: #fff; --line: #e3e3de; --text: #1d1f22; --muted: #62676f; --accent: #3a62b8; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1113; --sunk: #16191c; --line: #2b3036; --text: #e6e8ea; --muted: #9aa1aa; --accent: #8fb0f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.6 system-ui, -apple-system, "Segoe UI", sans-serif; }
main { max-width: 880px; margin: 0 auto; padding: 28px 20px 96px; }
nav { color: var(--muted); font-size: 14px; }
nav b { color: var(--text); }
a { color: var(--accent); }
h1 { font-size: 28px; line-height: 1.25; letter-spacing: -0.01em; }
h2 { margin-top: 40px; padding-top: 20px; border-top: 1px solid var(--line); font-size: 20px; scroll-margin-top: 12px; }
h3 { margin-top: 28px; font-size: 17px; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.9em; overflow-wrap: anywhere; }
pre { overflow-x: auto; padding: 14px 16px; background: var(--sunk); border: 1px solid var(--line); border-radius: 8px; }
pre code { overflow-wrap: normal; }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: 15px; }
th, td { padding: 7px 12px; border: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--sunk); font-weight: 600; }
blockquote { margin: 16px 0; padding: 2px 16px; border-left: 3px solid var(--line); color: var(--muted); }
@media (max-width: 480px) { main { padding: 16px 14px 64px; } }
`;

/** `Content-Security-Policy` of these pages. */
export const READING_POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "img-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

/**
 * The page of a document; its first heading becomes the title. `index` is the URL of the list of
 * documents.
 */
export async function readingPage(markdown: string, index: string): Promise<Buffer> {
  const { Marked } = await import("marked");
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? "svc";
  const marked = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        return (
          `<h${depth} ` +
          `id="${escaped(anchorOf(text))}">${this.parser.parseInline(tokens)}</h${depth}>\n`
        );
      },
    },
  });
  const body = await marked.parse(markdown);
  return Buffer.from(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)} · svc</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<nav><b>svc</b> · <a href="${escaped(index)}">Documents</a> · <a href="/dashboard">Console</a></nav>
${body}</main>
</body>
</html>
`);
}

/** The anchor of a heading, as links within Markdown documents name it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
};

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? "");
}
