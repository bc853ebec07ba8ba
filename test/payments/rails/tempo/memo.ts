// The memo that stock clients put into a transfer, computed apart from the code under test.
import { concat, type Hex, keccak256, slice, stringToBytes } from "viem";

/** MPP's memo for a challenge, of a client that names itself or not. */
export function memoFor({ id, realm }: { readonly id: string; readonly realm: string }): Hex {
  const fingerprint = (text: string, bytes: number): Hex =>
    slice(keccak256(stringToBytes(text)), 0, bytes);
  return concat([
    fingerprint("mpp", 4),
    "0x01",
    fingerprint(realm, 10),
    `0x${"00".repeat(10)}`,
    fingerprint(id, 7),
  ]);
}
