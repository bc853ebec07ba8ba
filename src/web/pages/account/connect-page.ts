// The approval page of a connection: shows which program requests a token, takes the owner's
// decision with the restrictions of the token, and shows the result. Knows no HTTP except statuses.
import {
  type ConnectionRecord,
  connectionToDecide,
  decideConnection,
  type Restrictions,
} from "../../../hosted/accounts/connections.ts";
import { CONNECTION_PAGE } from "../../api/handlers/claims.ts";
import { type Html, html } from "../../http/html.ts";
import { facts, moment, notice, type Page, secretField, shownName, wrongText } from "./page.ts";
import {
  type AccountPageParts,
  provenOwner,
  type RefusedForm,
  routeOf,
  type SentForm,
} from "./parts.ts";

/** Finds the connection that is to be approved. */
async function find({ store, runtime }: AccountPageParts, approval: string) {
  const connection = await connectionToDecide(store, approval, runtime.wallMs());
  if (connection === null) return UNKNOWN;
  return connection.status === "pending" ? connection : ENDS[connection.status];
}

async function submit(
  parts: AccountPageParts,
  connection: ConnectionRecord,
  sent: SentForm,
): Promise<Page | RefusedForm> {
  const { store, runtime } = parts;
  const { secret: approval, fields } = sent;
  if (fields.get("decision") === "deny") {
    const decision = { kind: "deny" } as const;
    const denied = await decideConnection(store, { approval, decision }, runtime.wallMs());
    return typeof denied === "object" ? DENIED : ENDS.expired;
  }
  const restrictions = restrictionsOf(fields, runtime.wallMs());
  if (restrictions === null) return { wrong: NO_SLUGS, status: 422 };
  const owner = await provenOwner(parts, sent);
  if ("wrong" in owner) return owner;
  const decision = { kind: "approve", owner, restrictions } as const;
  const approved = await decideConnection(store, { approval, decision }, runtime.wallMs());
  if (approved === "full") return { wrong: FULL, status: 409 };
  if (typeof approved === "object") return approvedPage(approved);
  const found = await find(parts, approval);
  return "body" in found ? found : connectForm(connection, null);
}

const NO_SLUGS = "Name profiles by their slugs, separated by commas, or leave the field empty.";
const FULL = "Your account has 100 connections. Revoke those that you do not need, then try again.";

const MAX_PROFILES = 20;
const DAY_MS = 86_400_000;
/** Offered lifetimes of the token in days; `0` = unlimited. */
const DAYS: readonly (readonly [string, string])[] = [
  ["1", "After a day"],
  ["30", "After 30 days"],
  ["90", "After 90 days"],
  ["365", "After a year"],
  ["0", "Never"],
];
const DEFAULT_DAYS = "90";

function restrictionsOf(form: URLSearchParams, nowMs: number): Restrictions | null {
  const slugs = (form.get("profiles") ?? "").split(/[\s,]+/).filter((slug) => slug !== "");
  if (slugs.length > MAX_PROFILES || !slugs.every((slug) => /^[a-z0-9][a-z0-9-]{0,62}$/.test(slug)))
    return null;
  const chosen = form.get("days") ?? DEFAULT_DAYS;
  const days = Number(DAYS.some(([offered]) => offered === chosen) ? chosen : DEFAULT_DAYS);
  return {
    profiles: slugs.length === 0 ? null : [...new Set(slugs)],
    readOnly: form.get("read_only") !== null,
    expiresAtMs: days === 0 ? null : nowMs + days * DAY_MS,
  };
}

const UNKNOWN = notice(404, "This link leads nowhere", [
  "It was mistyped or cut off, or it ended a while ago.",
  "Let the program ask again, and open the link that it shows.",
]);
const DENIED = notice(200, "Denied", ["The program gets nothing. You can close this page."]);
const ENDS: Readonly<Record<Exclude<ConnectionRecord["status"], "pending">, Page>> = {
  approved: notice(410, "This was approved already", [
    "Go back to the program. The connections of your account can be revoked at any time.",
  ]),
  denied: notice(410, "This was denied", ["If you want it after all, let the program ask again."]),
  expired: notice(410, "This link has expired", [
    "A connection has to be approved within 15 minutes. Nothing was changed.",
    "Let the program ask again, and open the link that it shows.",
  ]),
};

function connectForm(connection: ConnectionRecord, wrong: string | null): Page {
  const title = "A program asks to manage your account";
  const options = DAYS.map(
    ([value, words]): Html =>
      value === DEFAULT_DAYS
        ? html`<option value="${value}" selected>${words}</option>`
        : html`<option value="${value}">${words}</option>`,
  );
  const body = html`<h1>${title}</h1>
<p class="lead">Approve, and it gets a management token: it sees your keys and your balance, and can create and delete keys, within what you allow below.</p>
${facts([
  ["It calls itself", shownName(connection.name)],
  ["Asked", moment(connection.createdAtMs)],
  ["Open until", moment(connection.openUntilMs)],
])}
<p class="note">Anybody can ask under any name. Approve only if you have just started this yourself.</p>
${wrongText(wrong)}
<section>
<form method="post">
<h2>What it may do</h2>
<label class="check"><input type="checkbox" name="read_only" value="1"> <span>Only read, change nothing</span></label>
<label for="profiles">Only keys of these profiles</label>
<input id="profiles" type="text" name="profiles" maxlength="1300" autocomplete="off" autocapitalize="off" spellcheck="false" placeholder="all profiles">
<label for="days">Its token ends</label>
<select id="days" name="days">${options}</select>
${secretField("Your management token", "Used once, now, and not kept. A key of the account (svc_ak_…) works too: then it may only " + "read.")}
<div class="buttons"><button name="decision" value="approve">Approve</button><button class="plain" name="decision" value="deny" formnovalidate>Deny</button></div>
</form>
</section>`;
  return { status: 200, title, body };
}

function profilesText(profiles: readonly string[] | null): string {
  if (profiles === null) return "all";
  return profiles.length === 0 ? "none" : profiles.join(", ");
}

function approvedPage({ name, profiles, readOnly, expiresAtMs, id }: ConnectionRecord): Page {
  const body = html`<h1 class="good">Approved</h1>
<p class="lead">Go back to the program: it fetches its token by itself. You can close this page.</p>
${facts([
  ["Program", shownName(name)],
  ["May", readOnly ? "read only" : "read and change"],
  ["Profiles", profilesText(profiles)],
  ["Ends", expiresAtMs === null ? "never" : moment(expiresAtMs)],
])}
<p class="note">To revoke it: <code>DELETE /api/v1/connections/${id}</code> with your management token.</p>`;
  return { status: 200, title: "Approved", body };
}

/** The pages of connections that wait to be approved. */
export const CONNECTION_ROUTE = routeOf(CONNECTION_PAGE, { find, form: connectForm, submit });
