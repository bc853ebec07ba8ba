// A stand-in for Tempo's channel reserve (TIP-1034), for a chain that ends before the fork with the
// real one. FOR DEVELOPMENT ONLY: the contract belongs to this project, not to Tempo. Supplies what
// the stand-in needs from outside the chain; knows nothing of vouchers and payees.
import type { Hex } from "viem";
import {
  concatHex,
  decodeFunctionData,
  encodeAbiParameters,
  fromRlp,
  isHex,
  keccak256,
  pad,
  parseAbi,
  toRlp,
} from "viem/utils";
import { z } from "zod";
import { codeOf, type NodeCall } from "./token.ts";

/**
 * The opening of a channel in a transaction: its payer, its salt, and the hash of the transaction,
 * which is a part of the channel's id.
 */
export interface Opening {
  readonly payer: Hex;
  readonly salt: Hex;
  readonly context: Hex;
}

/** Address of Tempo's channel reserve, where the stand-in is placed. */
const CHANNEL_RESERVE = "0x4d50500000000000000000000000000000000000";

const ABI = parseAbi([
  "function open(address payee, address operator, address token, uint96 deposit, bytes32 salt, address authorizedSigner) returns (bytes32)",
]);
const APPROVE = "0x095ea7b3";
const NOTHING: Hex = "0x";
const ANYTHING = "f".repeat(64);
const GAS = "0x100000";
/** Positions in the list of fields of a Tempo transaction. */
const FIELD = { feeToken: 10, feePayer: 11 };
const TEMPO_TYPE: Hex = "0x76";
/** What the payer signs in place of a sponsor's signature. */
const SPONSORED: Hex = "0x00";

const Accounts = z.array(z.string());
const hex = z.custom<Hex>((value) => isHex(value));
const Sent = z.object({
  from: hex,
  calls: z.array(z.object({ to: hex.optional(), data: hex.optional() })),
});

/**
 * Places the stand-in, and has every development account approve it for the token; the real reserve
 * needs no approval. False = the node has the real reserve, and nothing was done.
 */
export async function placeStandIn(call: NodeCall, token: string): Promise<boolean> {
  if ((await call("eth_getCode", CHANNEL_RESERVE, "latest")) !== NOTHING) return false;
  await call("anvil_setCode", CHANNEL_RESERVE, codeOf("ChannelReserve.bin-runtime"));
  const data = `${APPROVE}${pad(CHANNEL_RESERVE).slice(2)}${ANYTHING}`;
  const accounts = Accounts.parse(await call("eth_accounts"));
  await Promise.all(
    accounts.map((from) => call("eth_sendTransaction", { from, to: token, data, gas: GAS })),
  );
  return true;
}

/**
 * The channels that a raw transaction opens; empty for most transactions, and for bytes that cannot
 * be parsed.
 */
export async function openingsOf(raw: Hex): Promise<readonly Opening[]> {
  if (!raw.startsWith(TEMPO_TYPE) || !raw.toLowerCase().includes(CHANNEL_RESERVE.slice(2)))
    return [];
  // Imported at the first opening, because the import takes a third of a second.
  const { Transaction } = await import("viem/tempo");
  try {
    const { from, calls } = Sent.parse(Transaction.deserialize(raw));
    const fields = fromRlp(`0x${raw.slice(TEMPO_TYPE.length)}`);
    if (!Array.isArray(fields)) return [];
    const context = keccak256(concatHex([signedPart(fields), from]));
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

/**
 * The fields that the payer signed: everything except its signature; for a sponsored transaction
 * also except the fee payer and the fee token.
 */
function signedPart(fields: readonly RlpItem[]): Hex {
  const signed = fields.slice(0, -1);
  const sponsored = fields[FIELD.feePayer] !== NOTHING;
  const normal = signed.map((field, at) => {
    if (!sponsored) return field;
    if (at === FIELD.feePayer) return SPONSORED;
    return at === FIELD.feeToken ? NOTHING : field;
  });
  return concatHex([TEMPO_TYPE, toRlp(normal)]);
}

type RlpItem = Hex | readonly RlpItem[];

function saltOf(data: Hex): Hex | null {
  try {
    return decodeFunctionData({ abi: ABI, data }).args[4];
  } catch {
    return null;
  }
}
