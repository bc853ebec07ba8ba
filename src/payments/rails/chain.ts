// A node of a payment chain, called over HTTP: every call has a deadline, every answer a size
// limit, and nothing is sent twice. A failure on the way to the chain is thrown, an error that the
// node answers is a value. Knows no token and no rail; the node's URL may be a secret and appears
// in no error text.
import { z } from "zod";
import type { Runtime } from "../../runtime.ts";

/** What the node answered instead of a result. */
export interface NodeError {
  readonly kind: "node_error";
  readonly code: number;
  /** The node's own words, shortened: to decide by, never to log or show. */
  readonly message: string;
  /** Data of a reverted call, 0x…; null = none. */
  readonly data: string | null;
  /**
   * True if the node has tried the transaction and it reverts: then the transaction itself is at
   * fault.
   */
  readonly reverted: boolean;
}

/** A result as the caller's `read` returned it. */
export interface NodeResult<T> {
  readonly kind: "result";
  readonly value: T;
}

/** The chain was not reached, or its node cannot answer now: says nothing about any payment. */
export class ChainFailure extends Error {
  override readonly name = "ChainFailure";
}

/** The result; "unreachable" in place of a `ChainFailure`. */
export async function unlessUnreachable<T>(work: Promise<T>): Promise<T | "unreachable"> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof ChainFailure) return "unreachable";
    throw error;
  }
}

/** The node, and the limits of a call to it. */
export interface PaymentChainParts {
  /** May hold a secret. */
  readonly rpcUrl: string;
  readonly chainId: number;
  readonly runtime: Runtime;
  /** Default 5 s. */
  readonly timeoutMs?: number;
  /** Default 4 MiB. */
  readonly maxAnswerBytes?: number;
  /** After this time on the monotonic clock nothing is called; absent or null = no end. */
  readonly untilMs?: number | null;
}

const TIMEOUT_MS = 5_000;
const MAX_ANSWER_BYTES = 4_194_304;
const MAX_MESSAGE_CHARS = 500;
const MAX_DATA_CHARS = 4_096;
const NETWORK_CHARS = 18;

/** Calls one node of a payment chain. Opens no connection before the first call. */
export class PaymentChain {
  readonly #parts: PaymentChainParts;
  readonly chainId: number;
  #network: string | null = null;

  constructor(parts: PaymentChainParts) {
    this.#parts = parts;
    this.chainId = parts.chainId;
  }

  /** `read` may throw: an answer that it cannot read is a `ChainFailure`. */
  async call<T>(
    method: string,
    params: readonly unknown[],
    read: (result: unknown) => T,
  ): Promise<NodeResult<T> | NodeError> {
    const { runtime, untilMs } = this.#parts;
    if (runtime.now() >= (untilMs ?? Number.POSITIVE_INFINITY))
      throw new ChainFailure("The payment chain could not be read in the time there is");
    const id = Number(runtime.wireId());
    const text = await exchanged(this.#parts, { id, method, params });
    const answer = text === null ? TOO_LONG : parseAnswer(text, { id, method });
    if (answer.kind === "node_error") return answer;
    try {
      return { kind: "result", value: read(answer.value) };
    } catch {
      throw new ChainFailure(
        `The payment chain's node answered ${method} with something else than it should`,
      );
    }
  }

  /**
   * As `call`, for methods that a working node answers with a result only: its errors are thrown as
   * `ChainFailure`.
   */
  async get<T>(
    method: string,
    params: readonly unknown[],
    read: (result: unknown) => T,
  ): Promise<T> {
    return resultOf(await this.call(method, params, read), method);
  }

  /**
   * Distinguishes this chain from another one with the same number: its first block's hash,
   * shortened. Throws also if the node serves another chain id.
   */
  async network(): Promise<string> {
    if (this.#network !== null) return this.#network;
    const chainId = await this.get("eth_chainId", [], parseQuantity);
    if (chainId !== BigInt(this.chainId))
      throw new ChainFailure(
        `The payment chain's node serves chain ${chainId}, but ${this.chainId} is configured`,
      );
    const first = await this.get("eth_getBlockByNumber", ["0x0", false], (block) =>
      hashed.parse(block),
    );
    this.#network = first.hash.slice(0, NETWORK_CHARS);
    return this.#network;
  }
}

/** The result; throws an error of the node as `ChainFailure`. */
export function resultOf<T>(answer: NodeResult<T> | NodeError, method: string): T {
  if (answer.kind === "node_error") throw chainFailureOf(answer, method);
  return answer.value;
}

/** In place of an answer that is longer than the limit. */
const TOO_LONG: NodeError = {
  kind: "node_error",
  code: 0,
  message: "the answer is too long",
  data: null,
  reverted: false,
};

/**
 * An error that answers nothing: rate limits, missing state, methods that the node does not have.
 */
export function chainFailureOf(error: NodeError, method: string): ChainFailure {
  return new ChainFailure(
    error === TOO_LONG
      ? `The payment chain's node answered ${method} with more bytes than are read`
      : `The payment chain's node answered ${method} with error ${error.code}`,
  );
}

/** Reads a JSON-RPC quantity. */
export function parseQuantity(value: unknown): bigint {
  return BigInt(quantity.parse(value));
}

const quantity = z.string().regex(/^0x[0-9a-fA-F]{1,64}$/);
const hashed = z.object({ hash: z.string().regex(/^0x[0-9a-f]{64}$/) });

interface Request {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}

/** The text of an answer; null = it is too long. */
async function exchanged(
  { rpcUrl, runtime, timeoutMs = TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES }: PaymentChainParts,
  { id, method, params }: Request,
): Promise<string | null> {
  const end = new AbortController();
  const cancel = runtime.after(timeoutMs, () => end.abort());
  try {
    const { url, authorization } = targetOf(rpcUrl);
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json", ...authorization },
      body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
      redirect: "error",
      signal: end.signal,
    });
    const text = await bodyOf(response, maxAnswerBytes);
    if (response.status !== 200)
      throw new ChainFailure(
        `The payment chain's node answered ${method} with HTTP status ${response.status}`,
      );
    return text;
  } catch (error) {
    if (error instanceof ChainFailure) throw error;
    throw new ChainFailure(
      end.signal.aborted
        ? `The payment chain's node did not answer ${method} within ${timeoutMs} ms`
        : `The payment chain's node was not reached for ${method}`,
    );
  } finally {
    cancel();
  }
}

/** `fetch` takes no URL with a password. */
function targetOf(rpcUrl: string): {
  readonly url: string;
  readonly authorization: Readonly<Record<string, string>>;
} {
  const url = new URL(rpcUrl);
  if (url.username === "" && url.password === "") return { url: rpcUrl, authorization: {} };
  const login = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  url.username = "";
  url.password = "";
  return {
    url: url.href,
    authorization: { authorization: `Basic ${Buffer.from(login).toString("base64")}` },
  };
}

/** Null = it is longer than `maxBytes`; the rest was not read. */
async function bodyOf(response: Response, maxBytes: number): Promise<string | null> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * An answer under another id may belong to another call, and money would follow it: nothing of it
 * is believed.
 */
function parseAnswer(
  text: string,
  { id, method }: Pick<Request, "id" | "method">,
): NodeResult<unknown> | NodeError {
  const answer = answerShape.safeParse(jsonOf(text));
  if (!answer.success)
    throw new ChainFailure(
      `The payment chain's node answered ${method} with something else than JSON-RPC`,
    );
  if (answer.data.id !== id)
    throw new ChainFailure(`The payment chain's node answered ${method} under another id`);
  const { error } = answer.data;
  if (error === undefined) return { kind: "result", value: answer.data.result };
  const message = error.message.slice(0, MAX_MESSAGE_CHARS);
  return {
    kind: "node_error",
    code: error.code,
    message,
    data: revertData(error.data),
    reverted: error.code === REVERTED || /\brevert/i.test(message),
  };
}

const answerShape = z.union([
  z.object({
    id: z.unknown().optional(),
    error: z.object({ code: z.int(), message: z.string().catch(""), data: z.unknown().optional() }),
  }),
  z
    .object({
      id: z.unknown().optional(),
      error: z
        .null()
        .transform(() => undefined)
        .optional(),
      result: z.unknown(),
    })
    .refine((answer) => answer.result !== undefined),
]);

/** The error code of nodes for a reverted call. */
const REVERTED = 3;

/** Some nodes nest the data one level deeper. */
function revertData(data: unknown): string | null {
  const hex = z
    .string()
    .regex(/^0x[0-9a-fA-F]*$/)
    .max(MAX_DATA_CHARS);
  const found = z
    .union([hex, z.object({ data: hex }).transform((error) => error.data)])
    .safeParse(data);
  return found.success ? found.data : null;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
