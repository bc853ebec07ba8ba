// A protocol without cryptography: whatever challenges it has made it knows again, and nothing
// else.
import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { PaymentHeaders } from "../../src/payments/payments.ts";
import type { ChallengeParts, Protocol } from "../../src/payments/protocol.ts";
import type { X402Offer } from "../../src/payments/rails/rail.ts";

/** What stands in headers that this protocol writes. */
export interface FakeOffers {
  /** Ids of challenges, by method. */
  readonly mpp: Readonly<Record<string, string>>;
  readonly x402: readonly X402Offer[];
}

const credential = z.union([
  z.object({ challenge: z.string(), payload: z.unknown() }),
  z.object({
    accepted: z.custom<X402Offer>((it) => typeof it === "object" && it !== null),
    payload: z.unknown(),
  }),
]);

/**
 * A protocol that has made no challenge. The map outlives the process that made them, as signatures
 * do.
 */
export function fakeProtocol(
  made: Map<string, ChallengeParts & { readonly method: string; readonly amount: unknown }>,
): Pick<Protocol, keyof Protocol> {
  return {
    challenge(parts) {
      const mpp: Record<string, string> = {};
      for (const offer of parts.offers) {
        const id = randomUUID();
        made.set(id, { ...parts, method: offer.method, amount: offer.request["amount"] });
        mpp[offer.method] = id;
      }
      return ["offers", JSON.stringify({ mpp, x402: parts.x402 } satisfies FakeOffers)];
    },
    read(given) {
      const read = credential.safeParse(parseText(given));
      if (!read.success)
        return {
          kind: "bad_payment",
          problem: "malformed-credential",
          reason: "it cannot be read",
        };
      if ("accepted" in read.data)
        return {
          protocol: "x402",
          accepted: read.data.accepted,
          payload: read.data.payload,
          bound: null,
        };
      const { challenge: id, payload } = read.data;
      const of = made.get(id);
      if (of === undefined)
        return {
          kind: "bad_payment",
          problem: "invalid-challenge",
          reason: "it is no challenge of ours",
        };
      const request = { amount: of.amount };
      const challenge = {
        id,
        realm: "test",
        method: of.method,
        intent: "charge",
        request,
        expires: new Date(of.expiresAtMs).toISOString(),
      };
      return {
        protocol: "mpp",
        challenge,
        payload,
        source: null,
        bound: { digest: of.digest, fingerprint: of.fingerprint },
      };
    },
    receipt: ({ purchaseId, txHash }) => ["Payment-Receipt", `${purchaseId} ${txHash}`],
  };
}

function parseText({ text }: PaymentHeaders): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
