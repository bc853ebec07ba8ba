// The RPC door for HTTP: reads a bounded body, sends it through the spine once or once per batch item, and writes the reply.
import { isUtf8 } from "node:buffer";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type Fault, fault } from "../../core/fault.ts";
import { elements, isJson, OPEN_ARRAY, type Span, skipSpace } from "../../core/json.ts";
import type { StreamSink } from "../../upstream/transport.ts";
import type { Wheel } from "../../upstream/wheel.ts";
import { begin, type Headers, write, writeFault } from "../respond.ts";
import type { Address, AddressInput, Resolver } from "./address.ts";
import { runBatch } from "./batch.ts";
import { type ExchangeParts, evidenceOfReply, exchange, type Reply } from "./exchange.ts";
import { closing, renderReply } from "./render.ts";

/** Bounds of the HTTP door. */
export interface RpcLimits {
  readonly maxBodyBytes: number;
  readonly maxBatchItems: number;
  readonly batchConcurrency: number;
  /** Request bodies and batch answers held at one time, by all requests together. */
  readonly maxInFlightBytes: number;
}

/** What the HTTP door works with. */
export interface RpcParts extends ExchangeParts {
  readonly resolver: Resolver;
  readonly wheel: Wheel;
  readonly limits: RpcLimits;
  readonly budget: ByteBudget;
}

/** Counts bytes that are held for requests under way. */
export interface ByteBudget {
  used: number;
}

/** Serves one POST on an RPC path. */
export function serveRpc(parts: RpcParts, request: IncomingMessage, response: ServerResponse, requestId: string): void {
  const door = new Door(parts, request, response, requestId);
  door.open();
}

const STALL_MS = 30_000;
/** A body that is refused is still read, up to this many bytes, so that the refusal arrives. */
const DISCARD_BYTES = 16_000_000;

class Door implements StreamSink {
  readonly #parts: RpcParts;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #requestId: string;
  #address: Address | null = null;
  #chunks: Buffer[] = [];
  #size = 0;
  #reserved = 0;
  #refused = false;
  #cancel: (() => void) | null = null;
  #stream: { readonly reply: Reply; readonly verbatim: boolean; skip: number } | null = null;
  #progress = 0;

  constructor(parts: RpcParts, request: IncomingMessage, response: ServerResponse, requestId: string) {
    this.#parts = parts;
    this.#request = request;
    this.#response = response;
    this.#requestId = requestId;
  }

  open(): void {
    const { headers } = this.#request;
    this.#response.on("close", () => this.#closed());
    this.#request.on("error", () => {});
    this.#request.on("data", (chunk: Buffer) => this.#data(chunk));
    this.#request.on("end", () => this.#end());
    const address = this.#parts.resolver.resolve(addressInput(this.#request));
    if (address.kind !== "address") return this.#refuse(address);
    this.#address = address;
    if (headers["content-encoding"] !== undefined && headers["content-encoding"] !== "identity")
      return this.#refuse(fault("unsupported_media_type", "the body is compressed"));
    if (Number(headers["content-length"] ?? 0) > this.#parts.limits.maxBodyBytes) this.#refuse(this.#tooLarge());
  }

  data(chunk: Buffer): void {
    const stream = this.#stream;
    this.#progress++;
    if (stream === null) return;
    let part = chunk;
    if (stream.skip > 0) {
      part = chunk.subarray(Math.min(stream.skip, chunk.length));
      stream.skip -= chunk.length - part.length;
    }
    if (part.length > 0 && !this.#response.write(part)) this.#pauseStream(stream.reply);
  }

  end(value: Buffer, tail: Buffer): void {
    const stream = this.#stream;
    if (stream === null) return;
    this.data(value);
    const meta = stream.reply.address.meta === "body" ? evidenceOfReply(stream.reply, this.#parts.world.now()) : null;
    this.#response.end(stream.verbatim ? tail : closing(meta));
  }

  broken(message: string): void {
    this.#parts.observer.log.warn({ request_id: this.#requestId, reason: message }, "answer cut off");
    this.#response.destroy();
  }

  #data(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#refused) {
      if (this.#size > DISCARD_BYTES) this.#request.destroy();
      return;
    }
    this.#reserve(chunk.length);
    this.#chunks.push(chunk);
    if (this.#size > this.#parts.limits.maxBodyBytes) this.#refuse(this.#tooLarge());
    else if (this.#parts.budget.used > this.#parts.limits.maxInFlightBytes) this.#refuse(fault("unavailable", "too many request bytes are in flight"));
  }

  #end(): void {
    const address = this.#address;
    if (this.#refused || address === null) return;
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    this.#chunks = [];
    if (!isUtf8(bytes) || !isJson(bytes)) return this.#refuse(fault("parse_error", "the body is not valid JSON"));
    const start = skipSpace(bytes, 0, bytes.length);
    if (bytes[start] === OPEN_ARRAY) return this.#batch(bytes, start, address);
    const span: Span = { start, end: endOf(bytes) };
    const cancel = exchange(this.#parts, { bytes, span, address, requestId: this.#requestId, mayStream: true }, (reply) => this.#reply(reply));
    if (!this.#response.writableEnded) this.#cancel = cancel;
  }

  #batch(bytes: Buffer, start: number, address: Address): void {
    const { maxBatchItems } = this.#parts.limits;
    const spans = elements(bytes, start, bytes.length, maxBatchItems + 1);
    if (spans.length === 0) return this.#refuse(fault("invalid_request", "the batch is empty"));
    if (spans.length > maxBatchItems)
      return this.#refuse(fault("invalid_request", `a batch may hold ${maxBatchItems} items`, { nextAction: "send several smaller batches" }));
    this.#cancel = runBatch(this.#parts, { bytes, spans, address, requestId: this.#requestId }, (body) => {
      this.#cancel = null;
      if (body === null) write(this.#response, 204, this.#headers(), null);
      else write(this.#response, 200, this.#headers(), body);
    });
  }

  #reply(reply: Reply): void {
    this.#cancel = null;
    const { outcome, address } = reply;
    if (reply.id === null) {
      if (outcome.kind === "stream") outcome.stream.cut();
      return write(this.#response, 204, this.#headers(), null);
    }
    const meta = address.meta === "none" ? null : evidenceOfReply(reply, this.#parts.world.now());
    const headers = this.#headers(address.meta === "headers" && meta !== null ? metaHeader(JSON.stringify(meta)) : null);
    if (outcome.kind === "stream") return this.#startStream(reply, headers);
    const status = outcome.kind === "fault" ? outcome.fault.status : 200;
    if (outcome.kind === "fault" && outcome.fault.retryAfterMs !== null) headers.push("Retry-After", String(Math.ceil(outcome.fault.retryAfterMs / 1000)));
    write(this.#response, status, headers, renderReply(reply, address.meta === "body" ? meta : null));
  }

  #startStream(reply: Reply, headers: Headers): void {
    if (reply.outcome.kind !== "stream") return;
    const { stream } = reply.outcome;
    const verbatim = reply.wireId === reply.id && reply.address.meta !== "body";
    this.#stream = { reply, verbatim, skip: verbatim ? 0 : stream.resultStart };
    this.#cancel = () => stream.cut();
    begin(this.#response, headers, verbatim ? stream.bodyBytes : null);
    if (!verbatim) this.#response.write(`{"jsonrpc":"2.0","id":${reply.id},"result":`);
    this.#watchStall();
    stream.flow(this);
  }

  #pauseStream(reply: Reply): void {
    const { outcome } = reply;
    if (outcome.kind !== "stream") return;
    outcome.stream.pause();
    this.#response.once("drain", () => {
      this.#progress++;
      outcome.stream.resume();
    });
  }

  /** A stream that neither side moves for `STALL_MS` is cut. */
  #watchStall(): void {
    const before = this.#progress;
    this.#parts.wheel.set(STALL_MS, () => {
      if (this.#response.writableFinished || this.#response.destroyed) return;
      if (this.#progress !== before) return this.#watchStall();
      this.#cancel?.();
      this.broken("no progress");
    });
  }

  #refuse(why: Fault): void {
    this.#refused = true;
    this.#chunks = [];
    this.#reserve(-this.#reserved);
    this.#parts.observer.refused(why.code);
    writeFault(this.#response, this.#headers(), why);
    this.#request.resume();
  }

  #tooLarge(): Fault {
    return fault("body_too_large", `the body is larger than ${this.#parts.limits.maxBodyBytes} bytes`);
  }

  #headers(extra: readonly string[] | null = null): Headers {
    const headers: Headers = ["x-svc-request-id", this.#requestId];
    const theirs = this.#request.headers["x-request-id"];
    if (typeof theirs === "string" && /^[\x21-\x7e]{1,128}$/.test(theirs)) headers.push("X-Request-Id", theirs);
    if (extra !== null) headers.push(...extra);
    return headers;
  }

  #reserve(bytes: number): void {
    this.#reserved += bytes;
    this.#parts.budget.used += bytes;
  }

  #closed(): void {
    this.#reserve(-this.#reserved);
    this.#cancel?.();
    this.#cancel = null;
  }
}

const LONGEST_META_HEADER_BYTES = 4_096;

/** `x-svc-meta`: unpadded base64url; left out when it would be too long. */
function metaHeader(json: string): readonly string[] | null {
  const text = Buffer.from(json).toString("base64url");
  return text.length > LONGEST_META_HEADER_BYTES ? null : ["x-svc-meta", text];
}

function addressInput(request: IncomingMessage): AddressInput {
  const { "x-svc-provider": provider, "x-svc-strategy": strategy } = request.headers;
  return {
    url: request.url ?? "/",
    provider: typeof provider === "string" ? provider : undefined,
    strategy: typeof strategy === "string" ? strategy : undefined,
  };
}

function endOf(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] ?? 0) <= 0x20) end--;
  return end;
}
