// Renders a Markdown document as an HTML page, with a library that is imported at the first
// request. The page loads nothing and runs no script.
import { documentOf, escaped, html, pageStyle, raw } from "../http/html.ts";

const STYLE = pageStyle(
  `
main { max-width: 880px; margin: 0 auto; padding: 28px 20px 96px; }
nav { color: var(--muted); font-size: 14px; }
nav b { color: var(--text); }
h1 { font-size: 28px; line-height: 1.25; letter-spacing: -0.01em; }
h2 { margin-top: 40px; padding-top: 20px; border-top: 1px solid var(--line); font-size: 20px; scroll-margin-top: 12px; }
h3 { margin-top: 28px; font-size: 17px; }
pre { overflow-x: auto; padding: 14px 16px; background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
pre code { overflow-wrap: normal; }
table { display: block; overflow-x: auto; border-collapse: collapse; font-size: 15px; }
th, td { padding: 7px 12px; border: 1px solid var(--line); text-align: left; vertical-align: top; }
th { background: var(--card); font-weight: 600; }
blockquote { margin: 16px 0; padding: 2px 16px; border-left: 3px solid var(--line); color: var(--muted); }
@media (max-width: 480px) { main { padding: 16px 14px 64px; } }
`,
  "img-src 'self'; form-action 'none'",
);

/** `Content-Security-Policy` of these pages. */
export const READING_POLICY = STYLE.policy;

/**
 * The page of a document; its first heading becomes the title. `index` is the URL of the list of
 * documents.
 */
export async function readingPage(markdown: string, index: string): Promise<string> {
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
  const navigation = html`<nav><b>svc</b> · <a href="${index}">Documents</a> · <a href="/dashboard">Console</a></nav>`;
  const page = html`${navigation}
${raw(body)}`;
  return documentOf(STYLE, `${title} · svc`, page);
}

/** The anchor of a heading, as links within Markdown documents name it. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(" ", "-");
}
