// How a person proves on a page to own an account: by a secret that they type, with wrong ones limited by address.
import { type NoOwner, type Owner, ownerOf } from "../../hosted/owners.ts";
import type { PeopleParts, Visitor } from "./parts.ts";

const MAX_SECRET_CHARS = 512;

/** Whose account a typed secret shows; or why it shows none. */
export async function provenOwner({ store, world, misses }: PeopleParts, typed: string, { address }: Visitor): Promise<Owner | NoOwner | "too_many"> {
  if (misses.waitMs(address, world.now()) > 0) return "too_many";
  const secret = typed.slice(0, MAX_SECRET_CHARS).trim();
  const owner = await ownerOf(store, secret, world.wallMs());
  if (owner === "unknown" || owner === "malformed") misses.take(address, world.now());
  return owner;
}
