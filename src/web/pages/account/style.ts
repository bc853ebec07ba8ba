// The style sheet of the account pages: one column, light and dark, no images, no script.

/** The style sheet of every account page. */
export const STYLE = `
:root { color-scheme: light dark; --page: #f6f6f4; --card: #fff; --sunk: #fafaf8; --line: #e3e3de; --field: #9ba0a8; --text: #1d1f22; --muted: #62676f; --good: #1a7a4c; --bad: #b92f26; --accent: #3a62b8; --on-accent: #fff; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1113; --card: #16191c; --sunk: #101214; --line: #2b3036; --field: #626a75; --text: #e6e8ea; --muted: #9aa1aa; --good: #45b97c; --bad: #f0736a; --accent: #8fb0f5; --on-accent: #0d1524; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; }
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
code { overflow-wrap: anywhere; }
a { color: var(--accent); }
code, .secret { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; font-size: 0.92em; }
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
`;
