// Proves ownership of an account on a page, by a secret that the visitor types. Limits invalid
// secrets by address.
import { type NoOwner, type Owner, ownerOf } from "../../../hosted/accounts/accounts.ts";
import type { AccountPageParts, Visitor } from "./parts.ts";

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
