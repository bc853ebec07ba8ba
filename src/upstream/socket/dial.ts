// Opens a socket to a provider: one handshake, which yields a socket or the reason why there is
// none. Does not retry.

import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { WebSocket } from "ws";
import { PASSED_HEADER } from "../../core/passed-services.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import type { SsrfGuard } from "../ssrf-guard.ts";
import type { TimerWheel } from "../timer-wheel.ts";
import type { SocketLimits } from "./socket-limits.ts";

/** The URL and headers of a socket. Secret: both may carry keys. */
export interface SocketEndpoint {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Decides which addresses it may connect to; null = any. */
  readonly guard: SsrfGuard | null;
}

/**
 * Hears how a handshake ended: exactly one call, once, never synchronously, unless it is cancelled.
 */
export interface DialListener {
  /** `wire` is the underlying connection, for counting bytes. */
  opened(socket: WebSocket, wire: Socket): void;
  refused(failure: Failure): void;
}

/** Starts a handshake; the returned function cancels it. */
export function dial(
  endpoint: SocketEndpoint,
  limits: SocketLimits,
  timerWheel: TimerWheel,
  listener: DialListener,
): () => void {
  let over = false;
  let wire: Socket | null = null;
  let socket: WebSocket | null = null;
  let giveUp = (): void => refuse(plainFailure("unsent", "the handshake timed out"));
  let timer = timerWheel.set(limits.handshakeTimeoutMs, () => giveUp());

  function end(): boolean {
    if (over) return false;
    over = true;
    timer.clear();
    return true;
  }

  function refuse(failure: Failure): void {
    if (!end()) return;
    socket?.terminate();
    listener.refused(failure);
  }

  try {
    const refusal = endpoint.guard?.refusal(endpoint.url) ?? null;
    if (refusal !== null) throw refusal;
    socket = new WebSocket(endpoint.url, optionsOf(endpoint, limits));
  } catch (error) {
    // The address or header is invalid or refused. Reported later, as every refusal is.
    timer.clear();
    timer = timerWheel.set(0, () => refuse(plainFailure("unsent", nameOf(error))));
    return () => void end();
  }
  const opening = socket;
  // This listener stays: an error on a discarded socket must not end the process.
  opening.on("error", (error) => refuse(plainFailure("unsent", nameOf(error))));
  opening.on("upgrade", (response) => {
    wire = response.socket;
  });
  opening.on("unexpected-response", (_, response) => {
    giveUp = readRefusal(response, refuse);
  });
  opening.on("open", () => {
    if (end() && wire !== null) listener.opened(opening, wire);
  });
  return () => {
    if (end()) opening.terminate();
  };
}

/** The kind of an error, without any part of the address. */
export function nameOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string")
    return error.code;
  return "bad handshake";
}

const EXCERPT_CHARS = 512;
const EXCERPT_BYTES = 4 * EXCERPT_CHARS;

function optionsOf({ headers, guard }: SocketEndpoint, limits: SocketLimits) {
  const lowerCased = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    headers: {
      "user-agent": "svc",
      ...Object.fromEntries(lowerCased),
      ...(guard === null ? {} : { [PASSED_HEADER]: guard.mark }),
    },
    perMessageDeflate: false,
    followRedirects: false,
    maxPayload:
      guard === null
        ? limits.maxFrameBytes
        : Math.min(limits.maxFrameBytes, limits.maxGuardedFrameBytes),
    closeTimeout: limits.closeTimeoutMs,
    ...(guard === null ? {} : { lookup: guard.lookup }),
  };
}

/** An HTTP answer in place of a handshake. */
interface Answer extends Readable {
  readonly statusCode?: number | undefined;
  readonly headers: { readonly "retry-after"?: string | undefined };
}

/**
 * Reads an answer that is not a handshake; its beginning becomes the message. Returns the function
 * that stops reading.
 */
function readRefusal(response: Answer, refuse: (failure: Failure) => void): () => void {
  let body = Buffer.alloc(0);
  const { statusCode: httpStatus = 0, headers } = response;
  const end = (): void => {
    const message = body.toString("utf8").slice(0, EXCERPT_CHARS).trim();
    refuse({
      ...plainFailure("body", message),
      httpStatus,
      retryAfter: headers["retry-after"] ?? null,
    });
  };
  response.on("data", (chunk: Buffer) => {
    body = Buffer.concat([body, chunk]).subarray(0, EXCERPT_BYTES);
    if (body.length === EXCERPT_BYTES) end();
  });
  response.on("error", end).on("close", end);
  return end;
}
