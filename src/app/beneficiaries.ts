// Implements the payment wing's port to keys and accounts: what a payment buys is created by
// `hosted`.

import { insertAnonymousKey } from "../hosted/keys/create.ts";
import { grantCustomAccessIn } from "../hosted/profiles/custom-access.ts";
import type { Beneficiaries } from "../payments/purchase/fulfilment.ts";

/** Keys and access in the service's own store. */
export const BENEFICIARIES: Beneficiaries = {
  createKey: insertAnonymousKey,
  async grantAccess(tx, access, atMs) {
    const given = await grantCustomAccessIn(tx, access, atMs);
    if (given.kind === "api_fault")
      throw new Error(`account ${access.accountId} was there and takes no days: ${given.code}`);
    return given;
  },
};
