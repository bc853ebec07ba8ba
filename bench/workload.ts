// Requests of the benchmark and their right answers. Both derive from one number, so that each end
// can generate or check them without shared state.

/**
 * `small`: answers of 200 B. `large`: answers of 1 MiB. `sized`: answers of the size and framing
 * that the request states. `batch`: 20 small calls in one array, `long-batch`: 1,000. `mixed`:
 * small calls, every second one with one of 10,000 method names.
 */
export type Workload = "small" | "large" | "sized" | "batch" | "long-batch" | "mixed";

/** Size and framing of the answers of the workload `sized`. */
export interface AnswerShape {
  /** Length of the whole body; at least 200. */
  readonly bytes: number;
  /** True = chunked encoding instead of `Content-Length`. */
  readonly chunked: boolean;
}

/** The shape of answers of the workload `large`. */
export const LARGE_SHAPE: AnswerShape = { bytes: 1_048_576, chunked: false };

/** Length of a whole small answer body in bytes. */
export const SMALL_BYTES = 200;
/** Calls per batch, and per long one. */
export const BATCH_CALLS = 20;
const LONG_BATCH_CALLS = 1_000;
/** Number of method names in the mixed workload. */
export const METHOD_NAMES = 10_000;
/**
 * The first number. Every number has nine digits, so that all requests and answers of a workload
 * have the same length.
 */
export const FIRST_NUMBER = 100_000_000;

/** JSON-RPC calls per HTTP request. */
export function callsIn(workload: Workload): number {
  if (workload === "long-batch") return LONG_BATCH_CALLS;
  return workload === "batch" ? BATCH_CALLS : 1;
}

/** The name under which the upstream counts calls of this workload. */
export function countedAs(workload: Workload): string {
  return workload === "large" || workload === "sized" ? "eth_getBlockReceipts" : "eth_getBalance";
}

/**
 * The request body that begins at `number`; a batch uses one number for each of its calls. `shape`
 * is used by the workload `sized` only.
 */
export function requestBody(
  workload: Workload,
  number: number,
  shape: AnswerShape = LARGE_SHAPE,
): string {
  switch (workload) {
    case "small":
      return balanceCall("eth_getBalance", number);
    case "large":
      return `{"jsonrpc":"2.0","id":${number},"method":"eth_getBlockReceipts","params":["0x${number}"]}`;
    case "sized":
      return `{"jsonrpc":"2.0","id":${number},"method":"eth_getBlockReceipts","params":["0x${number}",${shape.bytes},${shape.chunked ? 1 : 0}]}`;
    case "batch":
    case "long-batch":
      return `[${Array.from({ length: callsIn(workload) }, (_, at) => balanceCall("eth_getBalance", number + at)).join(",")}]`;
    case "mixed":
      return balanceCall(mixedMethod(number), number);
  }
}

/** The method name of a mixed call: `eth_getBalance`, or one of the 10,000. */
export function mixedMethod(number: number): string {
  return number % 2 === 0
    ? "eth_getBalance"
    : `bench_m${String((number >> 1) % METHOD_NAMES).padStart(7, "0")}`;
}

/** The shape that a request for a large or sized answer states. */
export function shapeIn(request: string): AnswerShape {
  const [, bytes, chunked] = /",(\d{1,9}),([01])\]/.exec(request) ?? [];
  return bytes === undefined ? LARGE_SHAPE : { bytes: Number(bytes), chunked: chunked === "1" };
}

/** The number in the parameters of a request as text; empty for probes, which have none. */
export function numberIn(request: string): string {
  return /"params":\["0x0*([1-9]\d{8})"/.exec(request)?.[1] ?? "";
}

/** The whole small answer to the call with this id and number. */
export function smallAnswer(id: string, number: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":"0x${SMALL_PAD}${number}"}`;
}

/** The right answer to a request of a workload with small answers. */
export function expectedAnswer(
  workload: Exclude<Workload, "large" | "sized">,
  number: number,
): string {
  if (callsIn(workload) === 1) return smallAnswer(String(number), String(number));
  return `[${Array.from({ length: callsIn(workload) }, (_, at) => smallAnswer(String(number + at), String(number + at))).join(",")}]`;
}

/** The variable part of a large answer; `largeRest()` follows it. */
export function largePrefix(id: string, number: string): string {
  return `{"jsonrpc":"2.0","id":${id},"result":[{"blockNumber":"0x${number}"}`;
}

/**
 * The constant part of a large or sized answer: receipts as a node returns them, up to exactly
 * `bytes` including the prefix with a nine-digit id.
 */
export function largeRest(bytes = LARGE_SHAPE.bytes): Buffer {
  const target = bytes - largePrefix(String(FIRST_NUMBER), String(FIRST_NUMBER)).length;
  const tail = (pad: number): string => `,{"pad":"0x${"0".repeat(pad)}"}]}`;
  const receipts: string[] = [];
  let length = tail(0).length;
  for (let at = 0; ; at++) {
    const text = receipt(at);
    if (length + text.length > target)
      return Buffer.from(receipts.join("") + tail(target - length), "latin1");
    receipts.push(text);
    length += text.length;
  }
}

const SMALL_PAD = "0".repeat(
  SMALL_BYTES - `{"jsonrpc":"2.0","id":${FIRST_NUMBER},"result":"0x${FIRST_NUMBER}"}`.length,
);

function balanceCall(method: string, number: number): string {
  return `{"jsonrpc":"2.0","id":${number},"method":"${method}","params":["0x${String(number).padStart(40, "0")}","latest"]}`;
}

function receipt(at: number): string {
  const hash = `0x${at.toString(16).padStart(64, "a")}`;
  const gas = `0x${(21_000 + at).toString(16)}`;
  return `,{"transactionHash":"${hash}","transactionIndex":"0x${at.toString(16)}","status":"0x1","gasUsed":"${gas}","logs":[],"logsBloom":"0x${"0".repeat(512)}"}`;
}
