// The page of a claim link: shows the key or account, takes the owner's decision, and shows the
// result. Knows no HTTP except statuses.
import { cuFor, usdText } from "../../../core/billing/price.ts";
import {
  type Claimed,
  type ClaimLink,
  claimByLink,
  claimLinkOf,
  type LinkEnd,
} from "../../../hosted/accounts/claim-links.ts";
import type { MergeRefusal } from "../../../hosted/accounts/merge.ts";
import { CLAIM_PAGE } from "../../api/handlers/claims.ts";
import { type Html, html } from "../../http/html.ts";
import { facts, moment, notice, type Page, secretField, shownName, wrongText } from "./page.ts";
import {
  type AccountPageParts,
  provenOwner,
  type RefusedForm,
  routeOf,
  type SentForm,
} from "./parts.ts";

/** Finds what a claim link is about. */
async function find({ store, runtime }: AccountPageParts, token: string) {
  const link = await claimLinkOf(store, token, runtime.wallMs());
  if (link === null) return ENDS.unknown;
  return link.end === null ? link : ENDS[link.end];
}

async function submit(
  parts: AccountPageParts,
  link: ClaimLink,
  sent: SentForm,
): Promise<Page | RefusedForm> {
  const { store, changes, settings, runtime } = parts;
  const isNew = sent.fields.get("into") === "new";
  const waitMs = isNew ? await parts.creations.take(sent.address, runtime.now()) : 0;
  if (waitMs > 0) return { wrong: TOO_MANY, status: 429 };
  const owner = isNew ? null : await provenOwner(parts, sent);
  if (owner !== null && "wrong" in owner) return owner;
  const claiming = { store, changes, maxKeys: settings.maxKeys, nowMs: runtime.wallMs() };
  const claimed = await claimByLink(claiming, sent.secret, owner);
  if (typeof claimed === "object") return claimedPage(parts, link, claimed);
  return isRefusal(claimed) ? { wrong: REFUSALS[claimed], status: 409 } : ENDS[claimed];
}

const TOO_MANY =
  "Too many accounts were created from your network in the last hour. Try again later.";

const ENDS: Readonly<Record<LinkEnd | "unknown" | "claimed", Page>> = {
  unknown: notice(404, "This link leads nowhere", [
    "It was mistyped or cut off, or it ended a while ago.",
    "Ask its sender for a new one: a claim link works for 10 minutes.",
  ]),
  expired: notice(410, "This link has expired", [
    "A claim link works for 10 minutes. Nothing was changed.",
    "Ask its sender for a new one.",
  ]),
  cancelled: notice(410, "A newer link has replaced this one", [
    "Only the newest claim link of a key works. Nothing was changed.",
    "Use the newer link, or ask for another.",
  ]),
  used: notice(410, "This link has been used", [
    "What it handed over belongs to an account now.",
    "If that was not you, ask its sender: the key can be deleted by the account that it " +
      "belongs to.",
  ]),
  claimed: notice(410, "This link has been used", [
    "What it handed over belongs to an account now.",
  ]),
};

const REFUSALS: Readonly<Record<Exclude<MergeRefusal, "claimed">, string>> = {
  no_account:
    "That is no account that can own a key. Use a secret of another one, or create an account.",
  full:
    "Your account would have more keys than it may have. Delete keys that you do not use, then " +
    "try again.",
  profiles:
    "The account behind this link has Custom profiles, which cannot move. Ask the sender of the " +
    "link to delete them, and to send a new one.",
  same: "That is the account behind this link. Use a secret of your own account, or create one.",
};

function isRefusal(
  end: MergeRefusal | LinkEnd | "unknown",
): end is Exclude<MergeRefusal, "claimed"> {
  return Object.hasOwn(REFUSALS, end);
}

function claimForm(link: ClaimLink, wrong: string | null, parts: AccountPageParts): Page {
  const isKey = link.accountKind === "anonymous";
  const title = isKey ? "Claim this key" : "Claim this account";
  const others = link.keys - 1;
  const body = html`<h1>${title}</h1>
<p class="lead">Someone handed you ${isKey ? "a key for blockchain calls" : "an account with its keys"}. Confirm, and it belongs to your account, with the balance that is left on it.</p>
${facts([
  ["Key", html`<code>${link.keyPrefix}…</code>${others > 0 ? ` and ${others} more` : null}`],
  ["Name", shownName(link.name)],
  ["Balance", balanceOf(parts, link.balanceN)],
  ["Link ends", moment(link.expiresAtMs)],
])}
<p class="note">Everybody who has the key can still use it, and then spends your account's balance. You can replace or delete the key at any time.</p>
${wrongText(wrong)}
<section>
<form method="post">
<h2>I have an account</h2>
<input type="hidden" name="into" value="mine">
${secretField("Management token or key of your account", "It is used once, now, and not kept.")}
<div class="buttons"><button>Add to my account</button></div>
</form>
</section>
<section>
<form method="post">
<h2>I have none</h2>
<p class="note">Creates an account that owns it. Its management token is shown on the next page, once.</p>
<input type="hidden" name="into" value="new">
<div class="buttons"><button class="plain">Create an account</button></div>
</form>
</section>`;
  return { status: 200, title, body };
}

function claimedPage(
  parts: AccountPageParts,
  link: ClaimLink,
  { accountId, keyPrefix, token }: Claimed,
): Page {
  const title = link.accountKind === "anonymous" ? "The key is yours" : "The keys are yours";
  const shown: Html | null =
    token === null
      ? null
      : html`<section><h2>Your management token</h2>
<p class="note">It is shown only now. Keep it in a password manager: anybody who has it can manage the account.</p>
<code class="secret">${token}</code></section>`;
  const body = html`<h1 class="good">${title}</h1>
<p class="lead">${token === null ? "It was added to your account." : "An account was created for it."} You can close this page.</p>
${facts([
  ["Account", html`<code>${accountId}</code>`],
  ["Key", html`<code>${keyPrefix}…</code>`],
  ["Moved", balanceOf(parts, link.balanceN)],
])}
${shown}`;
  return { status: 200, title, body };
}

function balanceOf({ settings }: AccountPageParts, balanceN: bigint): string {
  return `$${usdText(balanceN)} (${cuFor(settings.tariff, balanceN).toLocaleString("en")} CU)`;
}

/** The pages of claim links. */
export const CLAIM_ROUTE = routeOf(CLAIM_PAGE, { find, form: claimForm, submit });
