// The port between the RPC surface and a connection: how an answer is sent, independent of the
// server that holds the connection.
import type { BorrowedBuffer } from "../../upstream/transport.ts";
import type { Headers, Pieces } from "../http/respond.ts";
import type { GivenPayment } from "../payment/payment-headers.ts";
import type { RequestInfo } from "./authenticate.ts";

/** Destination of a streamed body. */
export interface BodySink {
  /**
   * Writes a part of the body. Returns the bytes not yet sent; 0 = `chunk` may be reused at once.
   * Otherwise `written` is called when `chunk` may be reused. `hasRoom`: the 32 bytes before
   * and after it may be overwritten.
   */
  write(chunk: Buffer, written: () => void, hasRoom?: boolean): number;
  end(): void;
  /** Calls `run` once when all bytes have been sent. */
  drained(run: () => void): void;
  /**
   * Closes the connection at once, so that the client cannot take a partial answer for a complete
   * one.
   */
  destroy(): void;
}

/** Sends the answer to one request. Exactly one of `send` and `begin` is called, once. */
export interface HttpExchange extends RequestInfo, BodySink {
  readonly requestId: string;
  /** The connection on which it came: the same object for all requests on it. */
  readonly connection: object;
  /** The payment in the request; null = none. */
  readonly payment: GivenPayment | null;
  /** Sends a whole answer; `body` null = no body. Adds the headers that every answer carries. */
  send(status: number, headers: Headers, body: Pieces, borrowed?: Borrowed | null): void;
  /**
   * Starts a 200 answer with a streamed body; `sizeBytes` null = unknown length. `first`: the
   * first bytes of the body; null = none yet. They are sent at the end of the turn at the latest,
   * together with what is written until then.
   */
  begin(headers: Headers, sizeBytes: number | null, first: Buffer | null): void;
  /**
   * Holds further writes back, so that they are sent together with the end of the body, which must
   * follow at once.
   */
  cork(): void;
  /** Bytes not yet sent. */
  readonly unsent: number;
  /** False once the answer is complete or the connection is gone. */
  readonly open: boolean;
  /** True once the answer is complete and the connection has taken all of it. */
  readonly delivered: boolean;
}

/** A borrowed buffer that holds a whole answer. */
export interface Borrowed {
  readonly bytes: Buffer;
  /** Where the buffer is returned to once nobody reads it any more. */
  readonly pool: BorrowedBuffer;
}
