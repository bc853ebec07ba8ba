// A complete HTML page that loads nothing, runs no script, is never cached and cannot be framed.
import { createHash } from "node:crypto";
import type { ServerResponse } from "node:http";
import type { Headers } from "../../http/respond.ts";
import { type Html, html } from "./markup.ts";
import { STYLE } from "./style.ts";

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

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join("; ");

const ALWAYS: readonly string[] = [
  ...["Content-Type", "text/html; charset=utf-8"],
  ...["Content-Security-Policy", POLICY],
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
  const bytes = Buffer.from(documentOf(title, body), "utf8");
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

function documentOf(title: string, body: Html): string {
  const style: Html = { kind: "html", text: `<style>${STYLE}</style>` };
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${style}
</head>
<body>
<main>
<p class="brand"><b>svc</b> · JSON-RPC gateway</p>
<div class="card">
${body}
</div>
</main>
</body>
</html>
`.text;
}
