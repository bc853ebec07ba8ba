// The receipt of a session as MPP's `tempo`/`session` defines it: what was promised and spent so
// far. Secret like every receipt: never log it.
import type { Runtime } from "../../runtime.ts";
import type { Hex } from "./descriptor.ts";

/** The contents of a receipt. */
export interface SessionReceipt {
  readonly challengeId: string;
  readonly channelId: Hex;
  readonly acceptedUnits: bigint;
  readonly spentUnits: bigint;
  readonly calls: bigint;
  /** The transaction of an opening, addition or close; null = none. */
  readonly txHash: Hex | null;
}

/** Names and values in turn. */
export function receiptHeaders(
  runtime: Pick<Runtime, "wallMs">,
  receipt: SessionReceipt,
): readonly string[] {
  const payload = {
    method: "tempo",
    intent: "session",
    status: "success",
    timestamp: new Date(runtime.wallMs()).toISOString(),
    reference: receipt.channelId,
    challengeId: receipt.challengeId,
    channelId: receipt.channelId,
    acceptedCumulative: String(receipt.acceptedUnits),
    spent: String(receipt.spentUnits),
    units: Number(receipt.calls),
    ...(receipt.txHash === null ? {} : { txHash: receipt.txHash }),
  };
  return ["Payment-Receipt", Buffer.from(JSON.stringify(payload)).toString("base64url")];
}
