// Markup shared by the account pages: lists of facts, the field for a secret, names chosen by
// others, times, and errors about secrets.
import type { NoOwner } from "../../../hosted/accounts/accounts.ts";
import { type Html, html } from "./markup.ts";

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

/** A time, precise to the minute. */
export function moment(wallMs: number): string {
  return `${new Date(wallMs).toISOString().slice(0, 16).replace("T", " ")} UTC`;
}

/** Why a secret was not accepted, in words. */
export const NO_OWNER_WORDS: Readonly<Record<NoOwner | "too_many", string>> = {
  malformed:
    "That is no management token (svc_mt_…) and no key (svc_ak_…): it is cut off or mistyped.",
  unknown: "No account has that token or key, or it was deleted.",
  ended: "That management token has expired or was revoked.",
  no_account:
    "That secret belongs to no account of somebody: it is an anonymous key, or its account has " +
    "become part of another one.",
  read_only: "That management token may only read. Use one that may change things.",
  too_many: "Too many wrong secrets came from your network. Wait a minute, then try again.",
};
