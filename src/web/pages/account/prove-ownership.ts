// How a person proves on a page to own an account: by a secret that they type, with wrong ones
// limited by address.
import { type NoOwner, type Owner, ownerOf } from "../../../hosted/accounts/ownership.ts";
import type { AccountPageParts, Visitor } from "./parts.ts";

const MAX_SECRET_CHARS = 512;

/** Whose account a typed secret shows; or why it shows none. */
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
