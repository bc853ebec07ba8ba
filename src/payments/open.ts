// Opens payments by their settings. The libraries of rails and protocols are heavy: this file is
// loaded only where rails are configured, and each rail only if it is one of them.
import { hkdfSync } from "node:crypto";
import type { Logger } from "pino";
import type { JobClaims } from "../cluster/job-claims.ts";
import type { Invalidations } from "../core/billing/invalidations.ts";
import type { Runtime } from "../runtime.ts";
import { Sealer } from "../secrets/sealer.ts";
import type { Store } from "../store/store.ts";
import type { Beneficiaries } from "./beneficiaries.ts";
import { OfferMacs } from "./offer-mac.ts";
import type { Payments } from "./payments.ts";
import { createProtocol } from "./protocol.ts";
import { resealPurchases } from "./purchase/retention.ts";
import { openRail } from "./rails/rails.ts";
import type { PaymentSettings } from "./settings.ts";
import { startPayments } from "./start.ts";

/** What opening payments needs. */
export interface OpenPaymentsParts {
  readonly store: Store;
  readonly runtime: Runtime;
  readonly log: Pick<Logger, "error" | "warn" | "info">;
  readonly changes: Invalidations;
  readonly beneficiaries: Beneficiaries;
  /** The node that leases purchases. */
  readonly node: string;
  /** Which node does what one does for all. */
  readonly claims: JobClaims;
  readonly settings: PaymentSettings;
  /** The realm of MPP challenges. */
  readonly realm: string;
  /** Secret of the service; keys derived from it sign offers and seal purchases. */
  readonly secret: string;
  readonly previousSecret: string | null;
}

/** Opens payments without waiting for any chain; throws where the store does. */
export async function openPayments({
  settings,
  realm,
  secret,
  previousSecret,
  ...parts
}: OpenPaymentsParts): Promise<Payments> {
  const sealer = new Sealer(secret, previousSecret);
  if (previousSecret !== null)
    await parts.claims.runIfDue({
      name: "reseal_purchases",
      everyMs: 0,
      run: async () =>
        parts.log.info(
          { resealed: await resealPurchases({ ...parts, sealer }) },
          "purchases are sealed with the present secret",
        ),
    });
  const rails = (
    await Promise.all(
      settings.rails.map((rail) => openRail(rail, { runtime: parts.runtime, realm })),
    )
  ).filter((rail) => rail !== null);
  const protocol = createProtocol({ realm, ...challengeSecrets(secret, previousSecret) });
  return startPayments({
    ...parts,
    settings,
    sealer,
    rails,
    protocol,
    offerMacs: new OfferMacs(secret, previousSecret),
  });
}

const SECRET_BYTES = 32;

/** Secrets that sign challenges, derived from those of the service, which they do not reveal. */
export function challengeSecrets(
  secret: string,
  previousSecret: string | null,
): { readonly secret: string; readonly previousSecret: string | null } {
  const derived = (from: string) =>
    Buffer.from(hkdfSync("sha256", from, "", "svc payment challenges", SECRET_BYTES)).toString(
      "base64url",
    );
  return {
    secret: derived(secret),
    previousSecret: previousSecret === null ? null : derived(previousSecret),
  };
}
