// The transfer of a payment by Tempo: one `transferWithMemo` of a TIP-20 token whose memo is bound
// to a challenge, as a call and as an event. Parses bytes; knows no transaction and no chain.
import { keccak256, stringToBytes } from "viem";
import { type EvmLog, topicOf } from "../evm/node.ts";

/** One call of a transaction. */
export interface TempoCall {
  readonly to?: string | undefined;
  readonly data?: string | undefined;
}

/** The transfer that a challenge expects. Addresses in lower case. */
export interface ExpectedTransfer {
  readonly token: string;
  readonly recipient: string;
  readonly units: bigint;
  /** The challenge that the memo is bound to. */
  readonly challengeId: string;
  readonly realm: string;
}

/** `keccak256("TransferWithMemo(address,address,uint256,bytes32)")`. */
export const TRANSFER_WITH_MEMO =
  "0x57bc7354aa85aed339e000bccffabbc529466af35f0772c8f8ee1145927de7f0";

const SELECTORS = {
  transfer: "0xa9059cbb",
  transferWithMemo: "0x95777d59",
  approve: "0x095ea7b3",
  swap: "0xf0122b75",
} as const;
const WORD_CHARS = 64;
const SELECTOR_CHARS = 10;
const TRANSFER_CHARS = SELECTOR_CHARS + 3 * WORD_CHARS;
const ADDRESS_PADDING = "0".repeat(24);

/**
 * The memo of the call that makes the expected transfer, in lower case; or what is wrong with the
 * calls. Besides it a transaction may hold transfers to others, and before it a swap that gets the
 * token: nothing else, and no second transfer to the recipient, which would be credited to nobody.
 */
export function memoOfCalls(
  calls: readonly TempoCall[],
  due: ExpectedTransfer,
): { readonly memo: string } | { readonly wrong: string } {
  const selectors = calls.map((call) => call.data?.slice(0, SELECTOR_CHARS).toLowerCase());
  const swaps = selectors[0] === SELECTORS.approve && selectors[1] === SELECTORS.swap ? 2 : 0;
  const rest = calls.slice(swaps);
  const isTransfer = (selector: string | undefined): boolean =>
    selector === SELECTORS.transfer || selector === SELECTORS.transferWithMemo;
  if (!selectors.slice(swaps).every(isTransfer))
    return { wrong: "The transaction does more than pay: sign one that holds only the transfer." };
  const paying = rest.filter(
    (call) => call.to?.toLowerCase() === due.token && recipientOf(call) === due.recipient,
  );
  const [call] = paying;
  if (call?.data === undefined)
    return { wrong: `The transaction has no transfer of ${due.token} to ${due.recipient}.` };
  if (paying.length > 1)
    return {
      wrong: "The transaction pays the recipient more than once: sign one with a single transfer.",
    };
  const [, amount = "", memo = ""] = wordsOf(call);
  if (!call.data.startsWith(SELECTORS.transferWithMemo) || call.data.length !== TRANSFER_CHARS)
    return { wrong: "The transfer has to be a `transferWithMemo`." };
  if (BigInt(`0x${amount}`) !== due.units)
    return { wrong: `The transfer has to be of exactly ${due.units} base units.` };
  if (!isBound(`0x${memo}`, due))
    return { wrong: "The transfer's memo does not belong to this challenge." };
  return { memo: `0x${memo}` };
}

/** The event of the expected transfer, the first of several; null = there is none. */
export function paidBy(logs: readonly EvmLog[], due: ExpectedTransfer): EvmLog | null {
  const isPaid = ({ address, topics: [event, , to, memo], data }: EvmLog): boolean =>
    event === TRANSFER_WITH_MEMO &&
    address === due.token &&
    to === topicOf(due.recipient) &&
    BigInt(data) === due.units &&
    memo !== undefined &&
    isBound(memo, due);
  return logs.find(isPaid) ?? null;
}

/** Null = it is no well-formed transfer. */
function recipientOf(call: TempoCall): string | null {
  const to = wordsOf(call)[0];
  return to?.startsWith(ADDRESS_PADDING) ? `0x${to.slice(ADDRESS_PADDING.length)}` : null;
}

function wordsOf({ data = "" }: TempoCall): readonly string[] {
  return data.slice(SELECTOR_CHARS).toLowerCase().match(/.{64}/g) ?? [];
}

/**
 * The layout of MPP's memo, in bytes: tag 4, version 1, server 10, client 10, challenge 7. All are
 * the first bytes of a hash; the client's are its own.
 */
const TAG = `${fingerprint("mpp", 4)}01`;
const SERVER_BYTES = 10;
const CHALLENGE_BYTES = 7;

function isBound(memo: string, { realm, challengeId }: ExpectedTransfer): boolean {
  return (
    memo.startsWith(`0x${TAG}${fingerprint(realm, SERVER_BYTES)}`) &&
    memo.length === WORD_CHARS + 2 &&
    memo.endsWith(fingerprint(challengeId, CHALLENGE_BYTES))
  );
}

function fingerprint(text: string, bytes: number): string {
  return keccak256(stringToBytes(text)).slice(2, 2 + bytes * 2);
}
