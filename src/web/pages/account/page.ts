// A complete HTML page that loads nothing, runs no script, is never cached and cannot be framed.
import type { ServerResponse } from "node:http";
import { documentOf, type Html, html, pageStyle } from "../../http/html.ts";
import type { Headers } from "../../http/respond.ts";

/** The contents of a page. */
export interface Page {
  readonly status: number;
  readonly title: string;
  readonly body: Html;
  /** Seconds until a retry makes sense; null = a retry does not help. */
  readonly retryAfterS?: number;
}

/** A page that only shows a message. */
export function notice(status: number, title: string, lines: readonly string[]): Page {
  return {
    status,
    title,
    body: html`<h1>${title}</h1>${lines.map((line) => html`<p class="lead">${line}</p>`)}`,
  };
}

/** The style sheet of every account page. */
const STYLE = pageStyle(
  `
main { max-width: 560px; margin: 0 auto; padding: 64px 20px 80px; }
.brand { margin: 0 0 20px; color: var(--muted); font-size: 14px; }
.brand b { color: var(--text); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 12px; padding: 28px; }
h1 { margin: 0 0 8px; font-size: 24px; line-height: 1.25; font-weight: 650; letter-spacing: -0.01em; }
h2 { margin: 0 0 4px; font-size: 16px; font-weight: 650; }
p { margin: 0 0 12px; }
p:last-child { margin-bottom: 0; }
.lead, .note, .hint { color: var(--muted); }
.note, .hint { font-size: 14px; }
.hint { margin: 6px 0 0; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 8px 20px; margin: 20px 0; padding: 16px 18px; background: var(--sunk); border: 1px solid var(--line); border-radius: 8px; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.secret { display: block; margin: 8px 0 12px; padding: 12px 14px; background: var(--sunk); border: 1px solid var(--line); border-radius: 8px; overflow-wrap: anywhere; user-select: all; -webkit-user-select: all; }
section { margin-top: 24px; padding-top: 24px; border-top: 1px solid var(--line); }
form { margin: 0; }
label { display: block; margin: 14px 0 6px; font-weight: 550; }
label.check { display: flex; gap: 10px; align-items: baseline; font-weight: 400; }
label .hint { font-weight: 400; }
input[type="password"], input[type="text"], select { width: 100%; min-height: 44px; padding: 9px 12px; font: inherit; color: inherit; background: var(--card); border: 1px solid var(--field); border-radius: 8px; }
input[type="checkbox"] { width: 17px; height: 17px; margin: 0; flex: none; transform: translateY(3px); accent-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.buttons { display: flex; flex-wrap: wrap; gap: 10px; margin-top: 18px; }
button { min-height: 44px; padding: 9px 18px; font: inherit; font-weight: 600; color: var(--on-accent); background: var(--accent); border: 1px solid transparent; border-radius: 8px; cursor: pointer; }
button.plain { color: var(--text); background: transparent; border-color: var(--field); }
.wrong { margin: 20px 0 0; padding: 10px 14px; color: var(--bad); border: 1px solid currentColor; border-radius: 8px; font-size: 15px; }
.good { color: var(--good); }
@media (max-width: 480px) { main { padding: 24px 14px 48px; } .card { padding: 22px 18px; } dl { grid-template-columns: minmax(0, 1fr); gap: 0; padding: 14px; } dd + dt { margin-top: 10px; } button { width: 100%; } }
`,
  "form-action 'self'",
);

const ALWAYS: readonly string[] = [
  ...["Content-Type", "text/html; charset=utf-8"],
  ...["Content-Security-Policy", STYLE.policy],
  ...["Referrer-Policy", "no-referrer"],
  ...["Cache-Control", "no-store"],
  ...["X-Content-Type-Options", "nosniff"],
  ...["X-Frame-Options", "DENY"],
  ...["X-Robots-Tag", "noindex, nofollow"],
  ...["Cross-Origin-Opener-Policy", "same-origin"],
  ...["Cross-Origin-Resource-Policy", "same-origin"],
];

/**
 * Writes a page. It sends no referrer and is closed to other origins, because its URL is a secret.
 */
export function writePage(
  response: ServerResponse,
  headers: Headers,
  { status, title, body, retryAfterS }: Page,
): void {
  if (response.destroyed || response.headersSent) return;
  const card = html`<p class="brand"><b>svc</b> · JSON-RPC gateway</p>
<div class="card">
${body}
</div>`;
  const bytes = Buffer.from(documentOf(STYLE, title, card), "utf8");
  const retry = retryAfterS === undefined ? [] : ["Retry-After", String(retryAfterS)];
  response.writeHead(status, [
    ...headers,
    ...ALWAYS,
    ...retry,
    "Content-Length",
    String(bytes.length),
  ]);
  response.end(bytes);
}

/** A list of named facts; entries with null are omitted. */
export function facts(rows: readonly (readonly [string, Html | string | null])[]): Html {
  return html`<dl>${rows.flatMap(([name, value]) => (value === null ? [] : [html`<dt>${name}</dt><dd>${value}</dd>`]))}</dl>`;
}

/** The input in which a visitor types a secret of the account. */
export function secretField(label: string, hint: string): Html {
  return html`<label for="secret">${label}</label>
<input id="secret" type="password" name="secret" required maxlength="512" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="svc_mt_…" aria-describedby="secret-hint">
<p class="hint" id="secret-hint">${hint}</p>`;
}

/**
 * A name chosen by somebody else, isolated so that its writing direction does not affect other
 * text.
 */
export function shownName(name: string): Html | null {
  return name === "" ? null : html`<bdi>${name}</bdi>`;
}

/** Why a form was not carried out; null = nothing is shown. */
export function wrongText(wrong: string | null): Html | null {
  return wrong === null ? null : html`<p class="wrong" role="alert">${wrong}</p>`;
}

/** A time, precise to the minute. */
export function moment(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}
