// A token with EIP-3009: encodes the calls that use or query an authorization, and reads its
// events. Calls no chain.
import {
  decodeErrorResult,
  encodeFunctionData,
  type Hex,
  parseAbi,
  toEventSelector,
  toHex,
} from "viem";
import type { Authorization } from "./authorization.ts";
import { type EvmLog, type EvmReceipt, TRANSFER, topicOf } from "./node.ts";

/** How an authorization was used, and in which block. */
export type AuthorizationUse =
  /** The recipient has the money. `logIndex` is the transfer's. */
  | {
      readonly kind: "paid";
      readonly txHash: string;
      readonly block: bigint;
      readonly blockHash: string;
      readonly logIndex: number;
    }
  /** It can never pay: the payer cancelled it, or spent its nonce on another payment. */
  | {
      readonly kind: "spent";
      readonly how: "cancelled" | "elsewhere";
      readonly block: bigint;
      readonly blockHash: string;
    };

/** First topics of the events that end an authorization: used, cancelled. */
const ENDS: readonly [used: Hex, cancelled: Hex] = [
  toEventSelector("AuthorizationUsed(address,bytes32)"),
  toEventSelector("AuthorizationCanceled(address,bytes32)"),
];

const [USED, CANCELLED] = ENDS;
const MAX_REASON_CHARS = 120;

const ABI = parseAbi([
  "function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)",
  "function authorizationState(address authorizer, bytes32 nonce) view returns (bool)",
  "function balanceOf(address account) view returns (uint256)",
  "function decimals() view returns (uint8)",
  "function DOMAIN_SEPARATOR() view returns (bytes32)",
]);

/** Carries an authorization out; anybody may send it. */
export function transferData({
  from,
  to,
  value,
  validAfter,
  validBefore,
  nonce,
  signature,
}: Authorization): Hex {
  const r: Hex = `0x${signature.slice(2, 66)}`;
  const s: Hex = `0x${signature.slice(66, 130)}`;
  const v = Number.parseInt(signature.slice(130), 16);
  return encodeFunctionData({
    abi: ABI,
    functionName: "transferWithAuthorization",
    args: [from, to, value, validAfter, validBefore, nonce, v, r, s],
  });
}

/** Queries whether an authorization was used or cancelled. */
export function stateData({ from, nonce }: Pick<Authorization, "from" | "nonce">): Hex {
  return encodeFunctionData({ abi: ABI, functionName: "authorizationState", args: [from, nonce] });
}

/** Queries the balance of an address. */
export function balanceData(owner: Hex): Hex {
  return encodeFunctionData({ abi: ABI, functionName: "balanceOf", args: [owner] });
}

/** Queries the token's decimals, or its EIP-712 domain separator. */
export function factData(functionName: "decimals" | "DOMAIN_SEPARATOR"): Hex {
  return encodeFunctionData({ abi: ABI, functionName });
}

/** Topics of the events that end an authorization. */
export function endTopics({
  from,
  nonce,
}: Pick<Authorization, "from" | "nonce">): readonly (string | readonly string[])[] {
  return [ENDS, topicOf(from), nonce];
}

/** The effect of a transaction on an authorization; null = none. */
export function useIn(
  { succeeded, logs, txHash, block, blockHash }: EvmReceipt,
  token: Hex,
  authorization: Authorization,
): AuthorizationUse | null {
  if (!succeeded) return null;
  const own = logs.filter((log) => log.address === token.toLowerCase());
  const at = own.findIndex(
    (log) => (log.topics[0] === USED || log.topics[0] === CANCELLED) && isOf(log, authorization),
  );
  const end = own[at];
  if (end === undefined) return null;
  if (end.topics[0] === CANCELLED) return { kind: "spent", how: "cancelled", block, blockHash };
  const transfer = transferAt(own, at, authorization);
  return transfer === undefined
    ? { kind: "spent", how: "elsewhere", block, blockHash }
    : { kind: "paid", txHash, block, blockHash, logIndex: transfer.logIndex };
}

/** Why a call reverted, in the contract's words if it gave any: short and printable. */
export function revertReason(data: string | null): string | null {
  if (data === null || data.length < 10) return null;
  try {
    const { args } = decodeErrorResult({ abi: [], data: `0x${data.slice(2)}` });
    return String(args?.[0] ?? "")
      .replace(/[^\x20-\x7e]/g, "?")
      .slice(0, MAX_REASON_CHARS);
  } catch {
    // A custom error of the contract.
    return null;
  }
}

/**
 * The transfer that an authorization made. A transaction may carry out several authorizations of
 * one payer: for each, the token logs its use and then the transfer. Tokens that log them the other
 * way round are supported too.
 */
function transferAt(
  own: readonly EvmLog[],
  at: number,
  authorization: Authorization,
): EvmLog | undefined {
  const uses = own.flatMap((log, index) => (log.topics[0] === USED ? [index] : []));
  const next = uses.find((index) => index > at) ?? own.length;
  const before = uses.findLast((index) => index < at);
  const pays = (log: EvmLog): boolean => isTransferOf(log, authorization);
  return (
    own.slice(at + 1, next).find(pays) ??
    own.slice(before === undefined ? 0 : before + 1, at).findLast(pays)
  );
}

function isTransferOf({ topics, data }: EvmLog, { from, to, value }: Authorization): boolean {
  return (
    topics[0] === TRANSFER &&
    topics[1] === topicOf(from) &&
    topics[2] === topicOf(to) &&
    data === toHex(value, { size: 32 })
  );
}

function isOf({ topics }: EvmLog, { from, nonce }: Authorization): boolean {
  return topics[1] === topicOf(from) && topics[2] === nonce;
}
