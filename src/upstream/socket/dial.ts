// Opening a socket to a provider: one handshake, and either a socket or the reason why there is
// none. Decides nothing about trying again.
import type { Socket } from "node:net";
import type { Readable } from "node:stream";
import { WebSocket } from "ws";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import type { SsrfGuard } from "../ssrf-guard.ts";
import type { TimerWheel } from "../timer-wheel.ts";

/** Where a socket leads. Secret: both may carry keys. */
export interface SocketEndpoint {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Decides where it may lead; null = anywhere. */
  readonly guard: SsrfGuard | null;
}

/** Bounds of a handshake and of the socket that comes of it. */
export interface DialLimits {
  readonly handshakeTimeoutMs: number;
  readonly maxFrameBytes: number;
  /** … from a user's provider. */
  readonly maxGuardedFrameBytes: number;
  /** How long a polite close may take. */
  readonly closeTimeoutMs: number;
}

/**
 * Hears how a handshake ended: exactly one of these, once and never at once, unless it is
 * cancelled.
 */
export interface DialListener {
  /** `wire` is the connection below, for counting what arrives. */
  opened(socket: WebSocket, wire: Socket): void;
  refused(failure: Failure): void;
}

/** Begins a handshake; the returned function cancels it. */
export function dial(
  endpoint: SocketEndpoint,
  limits: DialLimits,
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
    // An address or header that cannot or must not be used at all. Told later, as every refusal is.
    timer.clear();
    timer = timerWheel.set(0, () => refuse(plainFailure("unsent", nameOf(error))));
    return () => void end();
  }
  const opening = socket;
  // This listener stays: an error of a socket that nobody wants any more must not end the process.
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

/** What kind of error it was, without anything of the address it was for. */
export function nameOf(error: unknown): string {
  if (error instanceof Error && "code" in error && typeof error.code === "string")
    return error.code;
  return "bad handshake";
}

const EXCERPT_CHARS = 512;
const EXCERPT_BYTES = 4 * EXCERPT_CHARS;

function optionsOf({ headers, guard }: SocketEndpoint, limits: DialLimits) {
  const lowerCased = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return {
    headers: { "user-agent": "svc", ...Object.fromEntries(lowerCased) },
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

/** What a provider answers in place of a handshake. */
interface Answer extends Readable {
  readonly statusCode?: number | undefined;
  readonly headers: { readonly "retry-after"?: string | undefined };
}

/**
 * An answer that is no handshake: its beginning is the message. Returns the way to end it with what
 * has arrived.
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
