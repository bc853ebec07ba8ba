// The services that account pages are built from, and the visitor of a page.
import type { AddressLimit } from "../../../core/billing/address-limit.ts";
import { type NoOwner, type Owner, ownerOf } from "../../../hosted/accounts/accounts.ts";
import type { HandlerParts } from "../../api/parts.ts";

export interface AccountPageParts
  extends Pick<HandlerParts, "store" | "runtime" | "changes" | "creations"> {
  readonly settings: Pick<HandlerParts["settings"], "tariff" | "maxKeys">;
  /** Limits invalid secrets by address. */
  readonly misses: AddressLimit;
}

/** The visitor of a page. */
export interface Visitor {
  /** IP address. */
  readonly address: string;
}

const MAX_SECRET_CHARS = 512;

/** The account that a typed secret belongs to, or why it proves none. */
export async function provenOwner(
  { store, runtime, misses }: AccountPageParts,
  typed: string,
  { address }: Visitor,
): Promise<Owner | NoOwner | "too_many"> {
  if (misses.waitMs(address, runtime.now()) > 0) return "too_many";
  const secret = typed.slice(0, MAX_SECRET_CHARS).trim();
  const owner = await ownerOf(store, secret, runtime.wallMs());
  if (owner === "unknown" || owner === "malformed") misses.take(address, runtime.now());
  return owner;
}
