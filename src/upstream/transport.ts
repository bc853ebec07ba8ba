// The ports that every transport to providers implements: send one request and hear one answer; on
// a socket also subscribe. Chooses no provider and retries nothing.

import type { Provider } from "../core/provider/profile.ts";
import type { Failure } from "../core/rpc/failure.ts";
import type { WireRequest } from "../core/rpc/wire-request.ts";

/** The owner of borrowed memory, to whom it is returned after its last use. */
export interface BorrowedBuffer {
  /**
   * Free bytes before a complete answer in its memory. Its reader may overwrite them, and the
   * answer itself.
   */
  readonly headroomBytes: number;
  /**
   * Takes a chunk back after it was queued for writing; from then on the chunk is empty for
   * everyone.
   */
  recycle(chunk: Buffer): void;
  /**
   * Takes a chunk back in the turn in which it was handed out, when no write is queued: cheaper.
   */
  reuse(chunk: Buffer): void;
}

/**
 * Room in memory for what is gathered for one request: its share of a budget that all requests
 * share.
 */
export interface MemoryShare {
  /** Takes room for `bytes` more. False = there is none. */
  take(bytes: number): boolean;
  /** Releases what was taken; at the end of the request it is released automatically. */
  giveBack(bytes: number): void;
}

/**
 * Bytes of an answer that may be gathered without taking room: so few that the number of
 * connections bounds them.
 */
export const FREE_BYTES = 65_536;

/** A long result that is still arriving; the id of its answer has been verified. */
export interface AnswerStream {
  /** The bytes of the body before the result value. */
  readonly head: Buffer;
  /** Offset of the id of the request in `head`. */
  readonly idAt: number;
  /** `Content-Length` of the whole body; null = the provider sent none. */
  readonly bodyBytes: number | null;
  /**
   * Starts the flow, beginning with the first byte of the result value. Nothing that arrived before
   * this call is lost.
   */
  flow(sink: StreamSink): void;
  /** Stops the flow until `resume`, while the sink cannot keep up. */
  pause(): void;
  resume(): void;
  /** Returns the memory of a chunk that the sink is done with; once per chunk. */
  recycle(chunk: Buffer): void;
  /** Ends the stream; the sink hears nothing more. */
  cut(): void;
}

/** Receives the rest of a long answer. Exactly one of `end` and `broken` is called, once. */
export interface StreamSink {
  /**
   * Receives a chunk. True = the sink is done with it. False = it is kept until written, and, if
   * `borrowed`, must then be returned with `recycle`. `hasRoom`: the sink may overwrite the 32
   * bytes before and after it.
   */
  data(chunk: Buffer, borrowed: boolean, hasRoom?: boolean): boolean;
  /**
   * Receives the last bytes: the first `valueBytes` belong to the result value, the rest closes the
   * envelope. True = the sink is done with them. Otherwise, if `borrowed`, they must be returned
   * with `recycle` once written.
   */
  end(last: Buffer, valueBytes: number, borrowed: boolean): boolean;
  /**
   * The answer failed, was invalid or arrived too slowly after it had begun. `by`: the caller is
   * the cause: its reader was too slow, or every provider refused a part of its range.
   */
  broken(message: string, by?: "reader" | "range"): void;
}

/** Offsets of the parts of a result in the bytes that hold it. */
export interface ResultSpan {
  /** The raw value. */
  readonly start: number;
  readonly end: number;
  /** Offset of the wire id; null = the bytes hold only the value. */
  readonly idAt: number | null;
}

/**
 * Hears the answer to one request: exactly one of `result`, `stream` and `failed`, unless the
 * request is cancelled.
 */
export interface AnswerListener {
  /**
   * A complete result, in `body` at `span`. With a `pool`, which only requests with `mayStream`
   * get, `body` is borrowed and must be returned with `recycle`, once, after its last use.
   */
  result(body: Buffer, span: ResultSpan, pool?: BorrowedBuffer): void;
  /** `first`: what is here of the result; valid only during the call. */
  stream(stream: AnswerStream, first: Buffer): void;
  /** A part of a long answer has arrived. */
  heard?(): void;
  /** After `stream`: nothing more arrives: the answer has ended or was cut. May be repeated. */
  streamed?(): void;
  /** After `stream`: the answer broke off; its sink hears the same. */
  broken(message: string): void;
  /**
   * The request failed. `raw` is the JSON of the provider's error member, if it sent one with the
   * id of the request.
   */
  failed(failure: Failure, raw: Buffer | null): void;
}

/** One request to a provider. The transport sends it under a new wire id. */
export interface OutgoingRequest extends WireRequest {
  readonly provider: Provider;
  /** As the caller wrote it; absent = a method that costs what most do. */
  readonly methodName?: string;
  /** False = the caller needs the answer in one piece and keeps it. */
  readonly mayStream: boolean;
  /**
   * The room that a gathered answer counts toward until it is delivered; absent = the service's
   * own.
   */
  readonly room?: MemoryShare | undefined;
  /** Marks of the services that its caller's request has passed; absent = none. */
  readonly passed?: readonly string[] | undefined;
  /**
   * It tests whether the provider is reachable, and may use extra connections when all others are
   * busy.
   */
  readonly isProbe?: true;
  /**
   * It may share a request with others where the provider takes batches, and a connection with
   * others under way where it takes pipelined requests; absent = it may not.
   */
  readonly mayShare?: boolean;
  /**
   * Deadline of its method: a streamed answer must end within ten times this; absent = the longest
   * deadline.
   */
  readonly deadlineMs?: number | undefined;
}

/** A request in flight. */
export interface Dispatch {
  /** False = it is certain that nothing was sent. */
  readonly sent: boolean;
  /** It waits for a busy connection. May still be true after it was sent. */
  readonly queued?: boolean;
  /** The batch that it was sent in; absent or null = it was sent alone. */
  readonly batch?: SentBatch | null;
  /** Ends the request; the listener hears nothing more, and a flowing stream is cut. */
  cancel(): void;
}

/**
 * Several calls that were sent as one request. What happens to all of them at once counts once:
 * the marks say what has been counted.
 */
export interface SentBatch {
  /** Number of its calls. */
  readonly size: number;
  isSilent: boolean;
  isGivenUp: boolean;
}

/** How a batch ended, for the calls that have no answer of their own. */
export interface BatchEnding {
  /**
   * `answered`: the answer was complete. `single`: the answer to one call came in place of an
   * array. `failed`: the batch failed, or was answered by one error.
   */
  readonly kind: "answered" | "single" | "failed";
  /** Why it failed, or an error in the answer that named no call; null = there is none. */
  readonly failure: Failure | null;
  /** Elements that were too long to be held, before it was known whose they are. */
  readonly passedOver: number;
}

/** Hears the answers to the calls of a batch, by their places in it, and then its end, once. */
export interface BatchListener {
  /** Whether any call still waits. */
  readonly isWaiting: boolean;
  /** Whether a call still waits, and whether it was answered. */
  isOpen(place: number): boolean;
  isAnswered(place: number): boolean;
  /** A part of the answer has arrived. */
  heard(): void;
  /** As of a single request; only for a call that is open. */
  result(place: number, body: Buffer, span: ResultSpan, pool?: BorrowedBuffer): void;
  failed(place: number, failure: Failure, raw: Buffer | null): void;
  /** Its answer is too long to be held with others. */
  tooLong(place: number): void;
  /** Nothing more comes. */
  over(ending: BatchEnding): void;
}

/** Sends one request to a provider, or several as one. */
export interface BatchUpstream extends Pick<Upstream, "send"> {
  sendBatch(requests: readonly OutgoingRequest[], listener: BatchListener): Dispatch;
}

/** A transport to providers. */
export interface Upstream {
  send(outgoing: OutgoingRequest, listener: AnswerListener): Dispatch;
  /**
   * Whether a request to the provider would be sent without waiting for a connection. Absent =
   * always.
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
  /** `raw` is the JSON of the provider's error member, if it sent one. */
  refused(failure: Failure, raw: Buffer | null): void;
  /** The raw JSON of `params.result` of one notification. */
  event(result: Buffer): void;
  /** The subscription existed and is lost. `reason` contains no address. */
  lost(reason: string): void;
}

/** Hears when a provider's socket opens and closes. */
export interface SocketListener {
  /** It is open. Called at once if it already was. */
  up(): void;
  /** It could not be opened, or has closed. `livedMs` null = it was never open. */
  down(failure: Failure, livedMs: number | null): void;
}

/** The state of a provider's socket, for display. */
export interface SocketReport {
  readonly state: "idle" | "connecting" | "open" | "waiting";
  /** Upstream subscriptions on it. */
  readonly subscriptions: number;
  /** Counts since the start: times it was opened, and frames that belonged to nothing. */
  readonly opened: number;
  readonly strayFrames: number;
}

/** Reaches providers by their `wsUrl`. */
export interface Sockets extends Upstream {
  /**
   * Subscribes, or joins an equal subscription on the same socket. `params` is the JSON array of
   * `eth_subscribe`. `cancel` leaves; when the last listener leaves, the subscription ends
   * upstream.
   */
  subscribe(provider: Provider, params: string, listener: SubscriptionListener): Dispatch;
  /** Keeps the provider's socket open until the returned function is called. */
  keep(provider: Provider, socketListener: SocketListener): () => void;
  /**
   * Closes the provider's socket as if it had failed: for one that looks open but delivers nothing.
   */
  renew(provider: Provider): void;
  report(provider: Provider): SocketReport;
}
