// The channels that a Tempo transaction opens, told to the stand-in for the channel reserve
// (`channel-reserve.ts`) before the transaction is mined. Loaded at the first transaction, because
// its libraries are heavy.
import { TxEnvelopeTempo } from "ox/tempo";
import type { Hex } from "viem";
import {
  concatHex,
  decodeFunctionData,
  encodeAbiParameters,
  isHex,
  keccak256,
  parseAbi,
} from "viem/utils";
import { z } from "zod";
import { CHANNEL_RESERVE, type NodeCall } from "./local-contracts.ts";

/**
 * The opening of a channel in a transaction: its payer, its salt, and the hash of the transaction,
 * which is a part of the channel's id.
 */
export interface Opening {
  readonly payer: Hex;
  readonly salt: Hex;
  readonly context: Hex;
}

const ABI = parseAbi([
  "function open(address payee, address operator, address token, uint96 deposit, bytes32 salt, address authorizedSigner) returns (bytes32)",
]);
const TEMPO_TYPE = "0x76";

const hex = z.custom<Hex>((value) => isHex(value));
const Sent = z.object({
  from: hex,
  calls: z.array(z.object({ to: hex.optional(), data: hex.optional() })),
});

/**
 * The channels that a raw transaction opens; empty for most transactions, and for bytes that cannot
 * be parsed.
 */
export function openingsOf(raw: Hex): readonly Opening[] {
  if (!raw.startsWith(TEMPO_TYPE) || !raw.toLowerCase().includes(CHANNEL_RESERVE.slice(2)))
    return [];
  try {
    const envelope = TxEnvelopeTempo.deserialize(`${TEMPO_TYPE}${raw.slice(TEMPO_TYPE.length)}`);
    const { from, calls } = Sent.parse(envelope);
    const context = keccak256(concatHex([TxEnvelopeTempo.encodeForSigning(envelope), from]));
    return calls.flatMap(({ to, data }) => {
      const salt =
        to?.toLowerCase() === CHANNEL_RESERVE && data !== undefined ? saltOf(data) : null;
      return salt === null ? [] : [{ payer: from, salt, context }];
    });
  } catch {
    return [];
  }
}

/** Sets the context of a channel in the stand-in before the block that opens the channel. */
export async function setContext(call: NodeCall, { payer, salt, context }: Opening): Promise<void> {
  const ofPayer = keccak256(
    encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [payer, 0n]),
  );
  await call("anvil_setStorageAt", CHANNEL_RESERVE, keccak256(concatHex([salt, ofPayer])), context);
}

function saltOf(data: Hex): Hex | null {
  try {
    return decodeFunctionData({ abi: ABI, data }).args[4];
  } catch {
    return null;
  }
}
