// A proxy before the node of the local Tempo chain that supplies what the node lacks: it sets the
// context of the channel reserve before a transaction is mined, and reports reverted calls as
// reverted. Forwards everything else. Knows nothing of payments.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Hex } from "viem";
import { z } from "zod";
import type { NodeCall } from "./local-contracts.ts";

/** A running proxy. */
export interface ReserveProxy {
  readonly url: string;
  /** Closes it and all connections; resolves once it is closed. */
  readonly close: () => Promise<void>;
}

const MAX_BODY_BYTES = 1_048_576;
const MAX_CONNECTIONS = 256;
/** Longer than the longest wait of `eth_sendRawTransactionSync`. */
const NODE_TIMEOUT_MS = 40_000;
/** Additional gas of a Tempo transaction over a plain one with the same effect. */
const TEMPO_GAS = 30_000n;
const HEADERS = { "content-type": "application/json" };

const hex = z.custom<Hex>((value) => typeof value === "string" && /^0x[0-9a-f]*$/i.test(value));
const Request = z.looseObject({
  id: z.unknown().optional(),
  method: z.string(),
  params: z.array(z.unknown()).default([]),
});
const Call = z.object({
  from: hex,
  calls: z.array(z.object({ to: hex, data: hex.optional(), input: hex.optional() })).length(1),
});
const Answer = z.looseObject({ result: z.unknown().optional(), error: z.unknown().optional() });
const Fields = z.record(z.string(), z.unknown());
/** The gas in an estimate or in a filled transaction. */
const Gas = z.union([hex, z.object({ tx: z.object({ gas: hex }) }).transform(({ tx }) => tx.gas)]);
type Request = z.infer<typeof Request>;
type Forward = (request: unknown) => Promise<z.infer<typeof Answer>>;

/** Starts the proxy on a free port of 127.0.0.1. */
export async function startReserveProxy(nodeUrl: string, call: NodeCall): Promise<ReserveProxy> {
  const server = createServer((request, response) => {
    serve(request, nodeUrl, call).then(
      (text) => response.writeHead(200, HEADERS).end(text),
      () => refuse(response),
    );
  });
  server.maxConnections = MAX_CONNECTIONS;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${portOf(server.address())}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function serve(request: IncomingMessage, nodeUrl: string, call: NodeCall): Promise<string> {
  const text = await bodyOf(request);
  const requests = z.union([Request, z.array(Request)]).safeParse(JSON.parse(text));
  if (!requests.success) return pass(nodeUrl, text);
  if (!Array.isArray(requests.data))
    return JSON.stringify(await answer(requests.data, nodeUrl, call));
  return JSON.stringify(
    await Promise.all(requests.data.map((request) => answer(request, nodeUrl, call))),
  );
}

async function answer(request: Request, nodeUrl: string, call: NodeCall): Promise<unknown> {
  const forward: Forward = async (message) =>
    Answer.parse(JSON.parse(await pass(nodeUrl, JSON.stringify(message))));
  switch (request.method) {
    case "eth_sendRawTransaction":
    case "eth_sendRawTransactionSync":
      await openChannels(hex.catch("0x").parse(request.params[0]), call);
      return forward(request);
    case "eth_call":
    case "eth_estimateGas":
    case "eth_fillTransaction": {
      const call = Call.safeParse(request.params[0]);
      if (!call.success) return forward(request);
      return faithful(request, call.data, forward);
    }
    default:
      return forward(request);
  }
}

/** Sets the contexts of the channels that a transaction opens. */
async function openChannels(raw: Hex, call: NodeCall): Promise<void> {
  const { openingsOf, setContext } = await import("./channel-openings.ts");
  for (const opening of openingsOf(raw)) await setContext(call, opening);
}

/**
 * Corrects the answer to a Tempo call: the node reports all of them as successful, with too little
 * gas. The same call in the plain form is answered correctly, so that answer is used.
 */
async function faithful(
  request: Request,
  { from, calls }: z.infer<typeof Call>,
  forward: Forward,
): Promise<unknown> {
  const [call] = calls;
  const method = request.method === "eth_call" ? "eth_call" : "eth_estimateGas";
  const [asked, ...rest] = request.params;
  const plain = await forward({
    ...request,
    method,
    params: [{ from, to: call?.to, data: call?.data ?? call?.input ?? "0x" }, ...rest],
  });
  if (plain.error !== undefined || method === "eth_call") return plain;
  const answered = await forward(request);
  const needed = BigInt(hex.parse(plain.result)) + TEMPO_GAS;
  const counted = Gas.safeParse(answered.result).data;
  if (counted === undefined || BigInt(counted) >= needed) return answered;
  const gas: Hex = `0x${needed.toString(16)}`;
  return request.method === "eth_estimateGas"
    ? { ...answered, result: gas }
    : forward({ ...request, params: [{ ...Fields.parse(asked), gas }, ...rest] });
}

async function pass(nodeUrl: string, body: string): Promise<string> {
  const response = await fetch(nodeUrl, {
    method: "POST",
    headers: HEADERS,
    body,
    signal: AbortSignal.timeout(NODE_TIMEOUT_MS),
  });
  return response.text();
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    const bytes = Buffer.from(chunk);
    size += bytes.length;
    if (size > MAX_BODY_BYTES) throw new RangeError("the body is too long");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString();
}

function refuse(response: ServerResponse): void {
  const error = { code: -32603, message: "the local Tempo chain does not answer: start svc again" };
  if (!response.headersSent) response.writeHead(502, { ...HEADERS, connection: "close" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
}

function portOf(address: AddressInfo | string | null): number {
  return address === null || typeof address === "string" ? 0 : address.port;
}
