// The receipt of a session as MPP's `tempo`/`session` has it: what was promised and used so far.
// Secret like every receipt: never log it.
import type { Runtime } from "../../runtime.ts";
import type { Hex } from "./descriptor.ts";

/** What a receipt says. */
export interface SessionReceipt {
  readonly challengeId: string;
  readonly channelId: Hex;
  readonly acceptedUnits: bigint;
  readonly spentUnits: bigint;
  readonly calls: bigint;
  /** The transaction that it is about; null = none. */
  readonly txHash: Hex | null;
}

/** Names and values in turn. */
export function receiptHeaders(
  runtime: Pick<Runtime, "wallMs">,
  it: SessionReceipt,
): readonly string[] {
  const receipt = {
    method: "tempo",
    intent: "session",
    status: "success",
    timestamp: new Date(runtime.wallMs()).toISOString(),
    reference: it.channelId,
    challengeId: it.challengeId,
    channelId: it.channelId,
    acceptedCumulative: String(it.acceptedUnits),
    spent: String(it.spentUnits),
    units: Number(it.calls),
    ...(it.txHash === null ? {} : { txHash: it.txHash }),
  };
  return ["Payment-Receipt", Buffer.from(JSON.stringify(receipt)).toString("base64url")];
}
