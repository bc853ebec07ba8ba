// Requests in flight on one provider's socket: each has a wire id and waits for the answer with
// that id. Knows nothing of how the socket is opened.
import { keepNewest } from "../../core/newest.ts";
import { readAnswer, readError, readLongResult } from "../../core/rpc/answer.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import type { WireRequest } from "../../core/rpc/wire-request.ts";
import type { AnswerListener, Dispatch } from "../transport.ts";

/** Hears the answer to a call; on a socket it always arrives complete. */
export type CallListener = Pick<AnswerListener, "result" | "failed">;

/** A request that waits for the socket or for its answer. */
export class PendingCall implements Dispatch {
  sent = false;
  readonly id: string;
  readonly request: WireRequest;
  readonly listener: CallListener;
  readonly #calls: PendingCalls;

  constructor(id: string, request: WireRequest, listener: CallListener, calls: PendingCalls) {
    this.id = id;
    this.request = request;
    this.listener = listener;
    this.#calls = calls;
  }

  cancel(): void {
    this.#calls.abandon(this, IGNORED);
  }
}

/** The calls of one socket, across its connections. */
export class PendingCalls {
  /** Number of calls begun so far. */
  begun = 0;
  readonly #wireId: () => string;
  readonly #pending = new Map<string, PendingCall>();
  /** Abandoned calls whose answer may still arrive, oldest first. */
  readonly #abandoned = new Map<string, CallListener>();

  constructor(wireId: () => string) {
    this.#wireId = wireId;
  }

  /** Number of waiting calls. */
  get size(): number {
    return this.#pending.size;
  }

  begin(request: WireRequest, listener: CallListener): PendingCall {
    this.begun++;
    const call = new PendingCall(this.#wireId(), request, listener, this);
    this.#pending.set(call.id, call);
    return call;
  }

  /** Abandons a call: its listener hears nothing more; a late answer goes to `late`. */
  abandon(call: PendingCall, late: CallListener): void {
    if (!this.#pending.delete(call.id) || !call.sent) return;
    this.#abandoned.set(call.id, late);
    keepNewest(this.#abandoned, MAX_ABANDONED);
  }

  /** The calls not yet written, in order. */
  unsent(): readonly PendingCall[] {
    return [...this.#pending.values()].filter((call) => !call.sent);
  }

  /** Delivers a frame with this id. False = no call waits for it, or ever did. */
  answer(id: string, body: Buffer): boolean {
    const listener = this.#pending.get(id)?.listener ?? this.#abandoned.get(id);
    if (listener === undefined) return false;
    this.#pending.delete(id);
    this.#abandoned.delete(id);
    judge(id, body, listener);
    return true;
  }

  fail(call: PendingCall, failure: Failure): void {
    if (this.#pending.delete(call.id)) call.listener.failed(failure, null);
  }

  /**
   * Returns the waiting calls after the connection was lost, to be failed; calls begun from now on
   * are for the next connection.
   */
  detach(): readonly PendingCall[] {
    this.#abandoned.clear();
    return [...this.#pending.values()];
  }
}

/** Ignores the answer. */
const IGNORED: CallListener = { result() {}, failed() {} };

const MAX_ABANDONED = 1_000;
const EXCERPT_BYTES = 512;
const MAX_ERROR_BYTES = 1_048_576;

function fail(listener: CallListener, message: string): void {
  listener.failed(plainFailure("body", message), null);
}

function judge(id: string, body: Buffer, listener: CallListener): void {
  const answer = readLongResult(body, id) ?? readAnswer(body, id);
  if (answer.kind === "bad") return fail(listener, body.toString("utf8", 0, EXCERPT_BYTES).trim());
  if (answer.kind === "foreign") return fail(listener, "the answer carries another id");
  if (answer.kind === "result") return listener.result(body, answer);
  if (answer.end - answer.start > MAX_ERROR_BYTES) return fail(listener, "the error is too long");
  const raw = body.subarray(answer.start, answer.end);
  listener.failed({ ...plainFailure("error", ""), ...readError(raw) }, raw);
}
