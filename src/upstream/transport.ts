// The ports that every transport to a provider implements: send one request, hear one answer; on a
// socket also subscribe. Chooses no provider and retries nothing.

import type { Provider } from "../core/provider/profile.ts";
import type { Failure } from "../core/rpc/failure.ts";
import type { WireRequest } from "../core/rpc/wire-request.ts";

/** Takes back borrowed memory that nobody reads any more. */
export interface BorrowedBuffer {
  /**
   * Bytes before a whole answer in its memory: they may be overwritten, as the answer itself may.
   */
  readonly headroomBytes: number;
  /** Takes it back after it has waited to be written: from here on it is empty for all. */
  recycle(chunk: Buffer): void;
  /** Takes it back in the turn in which it was lent, when nothing waits: cheaper. */
  reuse(chunk: Buffer): void;
}

/**
 * Room in memory for what is gathered for one request: its part of a budget that all requests
 * share.
 */
export interface Room {
  /** Takes room for so many bytes more; false = there is none. */
  take(bytes: number): boolean;
  /** Gives back what was taken; at the end of its request it goes back by itself. */
  giveBack(bytes: number): void;
}

/**
 * Bytes of an answer that may be gathered without room: so few that the number of connections
 * bounds them.
 */
export const FREE_BYTES = 65_536;

/**
 * A long result that is still arriving, of an answer whose id has been seen to be that of the
 * request.
 */
export interface AnswerStream {
  /** The upstream body up to the result value. */
  readonly head: Buffer;
  /** Where the id of the request begins in it. */
  readonly idAt: number;
  /** `Content-Length` of the whole body; null where the upstream does not say. */
  readonly bodyBytes: number | null;
  /**
   * Starts the flow, with the first byte of the result value. Nothing is lost between the answer
   * and this call.
   */
  flow(sink: StreamSink): void;
  /** Stops the flow until `resume`, for a sink that cannot keep up. */
  pause(): void;
  resume(): void;
  /** Hands back the memory of a chunk that the sink has done with, once. */
  recycle(chunk: Buffer): void;
  /** Ends it without another word to the sink. */
  cut(): void;
}

/** Takes the rest of a long answer. Exactly one of `end` and `broken` is called, once. */
export interface StreamSink {
  /**
   * True = done with the chunk. Otherwise it is kept until written; `lent` = and handed back with
   * `recycle` then.
   */
  data(chunk: Buffer, lent: boolean): boolean;
  /**
   * The last bytes, of which the first `valueBytes` still belong to the result value and the rest
   * closes the envelope; `lent` = handed back with `recycle` once they are written.
   */
  end(last: Buffer, valueBytes: number, lent: boolean): void;
  /**
   * The upstream failed or lied after its answer had begun, or got on too slowly; `byReader`:
   * because of its reader.
   */
  broken(message: string, byReader?: boolean): void;
}

/** Where the parts of a result are in the bytes that hold it. */
export interface ResultSpan {
  /** The raw value. */
  readonly start: number;
  readonly end: number;
  /** Where the id of ours begins; null = the bytes hold the value alone. */
  readonly idAt: number | null;
}

/**
 * Hears the answer to one request: exactly one of `result`, `stream` and `failed`, unless the
 * request is cancelled.
 */
export interface AnswerListener {
  /**
   * A complete result, which lies in `body` at `span`. With a `lender`, which only a request with
   * `mayStream` meets, `body` is borrowed: it goes back with `recycle`, once, when nobody reads it
   * any more.
   */
  result(body: Buffer, span: ResultSpan, lender?: BorrowedBuffer): void;
  stream(stream: AnswerStream): void;
  /** A part of a long answer has come. */
  heard?(): void;
  /** After `stream`: the answer broke off, which its sink is told as well. */
  broken(message: string): void;
  /**
   * `raw` is the JSON of the provider's error member, where it sent one with the id of the request.
   */
  failed(failure: Failure, raw: Buffer | null): void;
}

/**
 * One request for a provider. The transport sends it under an id of ours that no other request has.
 */
export interface OutgoingRequest extends WireRequest {
  readonly provider: Provider;
  /** False where the caller needs the answer in one piece and keeps it. */
  readonly mayStream: boolean;
  /**
   * Where an answer that is gathered is counted until it is told; left out = with the service's
   * own.
   */
  readonly room?: Room | undefined;
  /**
   * It asks whether the provider is there, and has connections of its own where all others are in
   * use.
   */
  readonly isProbe?: true;
  /**
   * Of its method: an answer that is passed on ends within ten times that; left out = the longest
   * there is.
   */
  readonly deadlineMs?: number | undefined;
}

/** A request on its way. */
export interface Dispatch {
  /** False as long as it is certain that nothing has left this machine. */
  readonly sent: boolean;
  /** It waits for a connection that others use; what has been sent may still say so. */
  readonly queued?: boolean;
  /** Ends it without another word to the listener; a flowing stream is cut. */
  cancel(): void;
}

/** One way of reaching providers. */
export interface Upstream {
  send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch;
  /**
   * Whether a request to the provider would not have to wait for a connection. Left out = it never
   * has to.
   */
  isFree?(provider: Provider): boolean;
  /** Closes connections to origins that none of these providers uses. */
  retain(providers: readonly Provider[]): void;
  close(): Promise<void>;
}

/**
 * Hears one subscription on a provider's socket: first `started` or `refused`, once; after
 * `started` any number of events and at most one `lost`.
 */
export interface SubscriptionListener {
  /** The provider has acknowledged it. */
  started(): void;
  /** `raw` is the JSON of the provider's error member, where it sent one. */
  refused(failure: Failure, raw: Buffer | null): void;
  /** The raw JSON of `params.result` of one notification. */
  event(result: Buffer): void;
  /** It existed and is gone. `reason` names no address. */
  lost(reason: string): void;
}

/** Hears what becomes of a provider's socket. */
export interface SocketListener {
  /** It is open. Also called at once when it is open already. */
  up(): void;
  /** It could not be opened, or has closed. `livedMs` null = it was never open. */
  down(failure: Failure, livedMs: number | null): void;
}

/** The state of a provider's socket, for showing. */
export interface SocketReport {
  readonly state: "idle" | "connecting" | "open" | "waiting";
  /** Upstream subscriptions on it. */
  readonly subscriptions: number;
  /** Since the start: times it was opened, and frames that belonged to nothing. */
  readonly opened: number;
  readonly strayFrames: number;
}

/** Reaches providers by their `wsUrl`. */
export interface Sockets extends Upstream {
  /**
   * Subscribes, or joins the same subscription on the same socket. `params` is the JSON array of
   * `eth_subscribe`. `cancel` leaves; the last one to leave unsubscribes.
   */
  subscribe(provider: Provider, params: string, listener: SubscriptionListener): Dispatch;
  /** Keeps the provider's socket open until told otherwise. */
  keep(provider: Provider, socketListener: SocketListener): () => void;
  /** Closes the provider's socket as if it had failed: it looks open and nothing comes. */
  renew(provider: Provider): void;
  report(provider: Provider): SocketReport;
}
