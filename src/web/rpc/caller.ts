// The port between the RPC surface and a connection: what a request's sender can be told, whichever
// server holds the connection.
import type { BorrowedBuffer } from "../../upstream/transport.ts";
import type { Headers } from "../http/respond.ts";
import type { GivenPayment } from "../payment/payment-headers.ts";
import type { RequestInfo } from "./authenticate.ts";

/** One request's way back. Exactly one of `send` and `begin` is used, once. */
export interface HttpExchange extends RequestInfo {
  readonly requestId: string;
  /** What the request carries to pay with; null = nothing. */
  readonly payment: GivenPayment | null;
  /** A whole answer; null = no body. The headers that every answer carries are added. */
  send(
    status: number,
    headers: Headers,
    body: readonly Buffer[] | null,
    borrowed?: Borrowed | null,
  ): void;
  /** Starts a 200 answer whose body follows; `sizeBytes` null = of unknown length. */
  begin(headers: Headers, sizeBytes: number | null): void;
  /**
   * Returns the bytes that still wait to be sent; 0 = `chunk` is no longer needed. `written` is
   * called once it is not, whenever that is.
   */
  write(chunk: Buffer, written: () => void): number;
  /** What is written from here on goes out together with the end, which follows at once. */
  cork(): void;
  end(): void;
  /** Bytes that wait to be sent. */
  readonly unsent: number;
  /** Calls back once when nothing waits to be sent. */
  drained(run: () => void): void;
  /** False once the answer is complete or the connection is gone. */
  readonly open: boolean;
  /** The answer is complete, and the connection has taken all of it. */
  readonly delivered: boolean;
  /** Cuts the connection, so that a half-sent answer cannot be taken for a whole one. */
  destroy(): void;
}

/** The borrowed bytes that a whole answer lies in. */
export interface Borrowed {
  readonly bytes: Buffer;
  /** Gets them back once nobody reads them any more, whenever that is. */
  readonly pool: BorrowedBuffer;
}

/** Whether the body of a request is sent as it is. */
export function isPlain(caller: Pick<HttpExchange, "header">): boolean {
  const encoding = caller.header("content-encoding");
  return encoding === undefined || encoding === "identity";
}
