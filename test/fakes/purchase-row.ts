// A purchase as its row: one that failed, since such a row needs nothing else in the store.
import type { PurchaseTable } from "../../src/shared/store/tables-payments.ts";

/** The row of a payment for an account. */
export function failedPurchase(id: string, accountId: string): PurchaseTable {
  const place = {
    rail: "evm",
    protocol: "x402",
    chain_id: 77n,
    network: "0x1",
    token: "0x2",
    recipient: "0x3",
    payer: "0x4",
  } as const;
  const times = {
    valid_until: null,
    blank_at: null,
    created_at: 1n,
    ended_at: 2n,
    look_at: 1n,
    looks: 3n,
    lease_node: null,
    lease_until: null,
  };
  const purpose = JSON.stringify({ kind: "credit_account", accountId });
  const offer = {
    payment_key: `key ${id}`,
    offer_id: `offer ${id}`,
    offer_claim: null,
    fingerprint: "f",
    material: "sealed",
    is_sent: 0n,
  };
  const end = {
    state: "failed",
    reason: "expired",
    tx_hash: "0x1",
    settled_ref: null,
    fulfilment: null,
  } as const;
  return {
    id,
    purpose,
    units: 100_000n,
    amount_n: 100_000_000n,
    ...place,
    ...times,
    ...offer,
    ...end,
  };
}
