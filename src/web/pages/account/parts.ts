// A page behind a link with a secret: what the link is about, its form, and what is done with it.
import type { AddressLimit } from "../../../core/billing/address-limit.ts";
import { type NoOwner, type Owner, ownerOf } from "../../../hosted/accounts/accounts.ts";
import type { HandlerParts } from "../../api/parts.ts";
import type { Page } from "./page.ts";

export interface AccountPageParts
  extends Pick<HandlerParts, "store" | "runtime" | "changes" | "creations"> {
  readonly settings: Pick<HandlerParts["settings"], "tariff" | "maxKeys">;
  /** Limits invalid secrets by address. */
  readonly misses: AddressLimit;
}

/** A form that was sent from a page. */
export interface SentForm {
  /** The secret of the link. */
  readonly secret: string;
  readonly fields: URLSearchParams;
  /** IP address of the visitor. */
  readonly address: string;
}

/** Why a form was not carried out; it is shown again with this above. */
export interface RefusedForm {
  readonly wrong: string;
  readonly status: number;
}

/** A page for what its link is about. */
interface LinkPage<Subject extends object> {
  /** What the link is about, or the page that says why it leads nowhere. */
  readonly find: (parts: AccountPageParts, secret: string) => Promise<Subject | Page>;
  /** The page with its form; `wrong`: why it was not carried out; null = it is new. */
  readonly form: (subject: Subject, wrong: string | null, parts: AccountPageParts) => Page;
  readonly submit: (
    parts: AccountPageParts,
    subject: Subject,
    sent: SentForm,
  ) => Promise<Page | RefusedForm>;
}

/** The pages whose paths begin in one way. */
export interface AccountRoute {
  readonly path: string;
  /** The page of a link with its secret; `sent`: the form that came from it; null = none did. */
  readonly show: (parts: AccountPageParts, secret: string, sent: SentForm | null) => Promise<Page>;
}

/** The route of a page; the secret follows its path. */
export function routeOf<Subject extends object>(
  path: string,
  { find, form, submit }: LinkPage<Subject>,
): AccountRoute {
  return {
    path,
    async show(parts, secret, sent) {
      const found = await find(parts, secret);
      if ("body" in found) return found;
      if (sent === null) return form(found, null, parts);
      const done = await submit(parts, found, sent);
      return "body" in done ? done : { ...form(found, done.wrong, parts), status: done.status };
    },
  };
}

const MAX_SECRET_CHARS = 512;

/** The account that the secret in a form belongs to, or why it proves none. */
export async function provenOwner(
  { store, runtime, misses }: AccountPageParts,
  { fields, address }: SentForm,
): Promise<Owner | RefusedForm> {
  if (misses.waitMs(address, runtime.now()) > 0) return { wrong: TOO_MANY, status: 429 };
  const secret = (fields.get("secret") ?? "").slice(0, MAX_SECRET_CHARS).trim();
  const owner = await ownerOf(store, secret, runtime.wallMs());
  if (owner === "unknown" || owner === "malformed") misses.take(address, runtime.now());
  return typeof owner === "string" ? { wrong: NO_OWNER[owner], status: 422 } : owner;
}

const TOO_MANY = "Too many wrong secrets came from your network. Wait a minute, then try again.";

/** Why a secret was not accepted, in words. */
const NO_OWNER: Readonly<Record<NoOwner, string>> = {
  malformed:
    "That is no management token (svc_mt_…) and no key (svc_ak_…): it is cut off or mistyped.",
  unknown: "No account has that token or key, or it was deleted.",
  ended: "That management token has expired or was revoked.",
  no_account:
    "That secret belongs to no account of somebody: it is an anonymous key, or its account has " +
    "become part of another one.",
  read_only: "That management token may only read. Use one that may change things.",
};
