// Which methods an endpoint serves, by namespace, tried with parameters that cost it little.
import type { EndpointCalls } from "./endpoint-calls.ts";

/** One method and what came of it. */
export interface TriedMethod {
  readonly method: string;
  /** `failed`: it was answered neither with a result nor with a refusal of the method. */
  readonly outcome: "served" | "refused" | "failed";
}

const NOBODY = "0x0000000000000000000000000000000000000000";
const CALL = { to: NOBODY, data: "0x" };

/** Methods that not every node has. The rest of `eth_*` is asked for elsewhere in the probe. */
const TRIED: readonly (readonly [method: string, ...params: readonly unknown[]])[] = [
  ["net_version"],
  ["eth_gasPrice"],
  ["eth_maxPriorityFeePerGas"],
  ["eth_feeHistory", "0x1", "latest", []],
  ["eth_blobBaseFee"],
  ["eth_call", CALL, "latest"],
  ["eth_estimateGas", CALL],
  ["eth_getCode", NOBODY, "latest"],
  ["eth_getStorageAt", NOBODY, "0x0", "latest"],
  ["eth_createAccessList", CALL, "latest"],
  ["eth_simulateV1", { blockStateCalls: [] }, "latest"],
  ["eth_getBlockReceipts", "latest"],
  ["eth_getLogs", { fromBlock: "latest", toBlock: "latest", address: NOBODY }],
  ["eth_getProof", NOBODY, [], "latest"],
  ["eth_newBlockFilter"],
  ["txpool_status"],
  ["debug_traceCall", CALL, "latest", { tracer: "callTracer" }],
  ["debug_traceBlockByNumber", "latest", { tracer: "callTracer" }],
  ["debug_getRawHeader", "latest"],
  ["trace_call", CALL, ["trace"], "latest"],
  ["trace_block", "latest"],
];

/** Tries the methods, one after the other. */
export async function servedMethods(calls: EndpointCalls): Promise<readonly TriedMethod[]> {
  const tried: TriedMethod[] = [];
  for (const [method, ...params] of TRIED) {
    const answer = await calls.send(method, params);
    if (answer.kind === "result") tried.push({ method, outcome: "served" });
    else if (answer.kind === "none") tried.push({ method, outcome: "failed" });
    else tried.push({ method, outcome: outcomeOf(answer.category) });
  }
  return tried;
}

function outcomeOf(category: string): TriedMethod["outcome"] {
  if (UNSERVED.has(category)) return "refused";
  return SERVED.has(category) ? "served" : "failed";
}

/** Categories of errors that say the endpoint does not serve the method. */
const UNSERVED: ReadonlySet<string> = new Set(["method_unsupported", "forbidden", "refused"]);
/** Categories of errors that only a node that serves the method gives. */
const SERVED: ReadonlySet<string> = new Set([
  ...["revert", "halt", "execution_info", "invalid_params", "trace_state", "execution_timeout"],
]);
