// The methods that the tester has forms for: their parameters by name, with an example of each.
// Other methods are written as JSON. Pure.
import { parseJson } from "../../api/json.ts";

/** One parameter of a form. */
export interface MethodField {
  readonly name: string;
  /** `json` = any value; `flag` = true or false; others are sent as text. */
  readonly kind: "text" | "json" | "flag";
  readonly example: string;
}

function field(name: string, kind: MethodField["kind"], example: string): MethodField {
  return { name, kind, example };
}

const ZERO_ADDRESS = "0x0000000000000000000000000000000000000000";
const BLOCK = field("Block", "text", "latest");
const ADDRESS = field("Address", "text", ZERO_ADDRESS);
const HASH = field("Hash", "text", `0x${"0".repeat(64)}`);
const WITH_TRANSACTIONS = field("Whole transactions", "flag", "false");
const CALL = field("Call", "json", `{"to":"${ZERO_ADDRESS}","data":"0x"}`);
const FILTER = field("Filter", "json", '{"fromBlock":"latest","toBlock":"latest"}');

/** Parameters by method. */
export const METHOD_FORMS: Readonly<Record<string, readonly MethodField[]>> = {
  eth_blockNumber: [],
  eth_chainId: [],
  eth_gasPrice: [],
  eth_syncing: [],
  eth_maxPriorityFeePerGas: [],
  eth_blobBaseFee: [],
  eth_getBalance: [ADDRESS, BLOCK],
  eth_getTransactionCount: [ADDRESS, BLOCK],
  eth_getCode: [ADDRESS, BLOCK],
  eth_getStorageAt: [ADDRESS, field("Slot", "text", "0x0"), BLOCK],
  eth_call: [CALL, BLOCK],
  eth_estimateGas: [CALL],
  eth_getBlockByNumber: [BLOCK, WITH_TRANSACTIONS],
  eth_getBlockByHash: [HASH, WITH_TRANSACTIONS],
  eth_getBlockReceipts: [BLOCK],
  eth_getTransactionByHash: [HASH],
  eth_getTransactionReceipt: [HASH],
  eth_getLogs: [FILTER],
  eth_feeHistory: [
    field("Blocks", "text", "0x4"),
    BLOCK,
    field("Percentiles", "json", "[25,50,75]"),
  ],
  eth_sendRawTransaction: [field("Signed transaction", "text", "0x")],
  net_version: [],
  web3_clientVersion: [],
  debug_traceTransaction: [HASH, field("Tracer", "json", '{"tracer":"callTracer"}')],
  trace_block: [BLOCK],
};

/** The parameters of a call. */
interface ReadParams {
  readonly params: readonly unknown[];
  /** What is wrong with them; "" = they can be sent. */
  readonly why: string;
}

/** The parameters of a form; fields at the end that are empty are left out. */
export function paramsOfForm(fields: readonly MethodField[], texts: readonly string[]): ReadParams {
  const params: unknown[] = [];
  for (const [at, field] of fields.entries()) {
    const text = (texts[at] ?? "").trim();
    const value = field.kind === "text" ? text : parseJson(text);
    if (value === undefined) return { params: [], why: `${field.name}: not valid JSON.` };
    params.push(value);
  }
  while (params.at(-1) === "") params.pop();
  return { params, why: "" };
}

/** The parameters in a JSON text: a list. */
export function paramsOfJson(text: string): ReadParams {
  const value = text.trim() === "" ? [] : parseJson(text);
  if (value === undefined) return { params: [], why: "Parameters: not valid JSON." };
  if (!Array.isArray(value))
    return { params: [], why: 'The parameters must be a JSON list, as ["latest", false].' };
  return { params: value, why: "" };
}

/** Whether a call changes the chain, and is sent only after it was confirmed again. */
export function needsConfirmation(method: string): boolean {
  return /send.*(transaction|bundle|operation)|submit/i.test(method.trim());
}
