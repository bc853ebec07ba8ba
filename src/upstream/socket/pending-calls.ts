// Requests under way on one provider's socket: each carries an id of ours and waits for the answer
// with that id. Knows nothing of how the socket comes to be.
import { readAnswer, readError, readLongResult } from "../../core/rpc/answer.ts";
import { type Failure, plainFailure } from "../../core/rpc/failure.ts";
import { type WireRequest, withWireId } from "../../core/rpc/wire-request.ts";
import type { AnswerListener, Dispatch } from "../transport.ts";

/** Hears the answer to a call. On a socket it always comes whole. */
export type CallListener = Pick<AnswerListener, "result" | "failed">;

/** What is asked. */
export type CallRequest = WireRequest;

/** A request that waits for the socket or for its answer. */
export class PendingCall implements Dispatch {
  sent = false;
  readonly id: string;
  readonly request: CallRequest;
  readonly listener: CallListener;
  readonly #calls: PendingCalls;

  constructor(id: string, request: CallRequest, listener: CallListener, calls: PendingCalls) {
    this.id = id;
    this.request = request;
    this.listener = listener;
    this.#calls = calls;
  }

  /**
   * Its bytes, made when they are needed: a call that waits holds no second copy of its request.
   */
  write(): Buffer {
    return withWireId(this.request, this.id);
  }

  cancel(): void {
    this.#calls.abandon(this, IGNORED);
  }
}

/** The calls of one socket, across its connections. */
export class PendingCalls {
  /** Calls begun so far. */
  begun = 0;
  readonly #wireId: () => string;
  readonly #pending = new Map<string, PendingCall>();
  /** Whose answer may still come though nobody waits for it, oldest first. */
  readonly #abandoned = new Map<string, CallListener>();

  constructor(wireId: () => string) {
    this.#wireId = wireId;
  }

  /** Calls that wait. */
  get size(): number {
    return this.#pending.size;
  }

  begin(request: CallRequest, listener: CallListener): PendingCall {
    this.begun++;
    const call = new PendingCall(this.#wireId(), request, listener, this);
    this.#pending.set(call.id, call);
    return call;
  }

  /** The listener hears nothing more; an answer that still comes goes to `late`. */
  abandon(call: PendingCall, late: CallListener): void {
    if (!this.#pending.delete(call.id) || !call.sent) return;
    this.#abandoned.set(call.id, late);
    for (const oldest of this.#abandoned.keys()) {
      if (this.#abandoned.size <= MAX_ABANDONED) break;
      this.#abandoned.delete(oldest);
    }
  }

  /** Those that have not been written, in the order they were begun. */
  unsent(): readonly PendingCall[] {
    return [...this.#pending.values()].filter((call) => !call.sent);
  }

  /** A frame that carries this id; false when nobody ever waited for it, or no longer does. */
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
   * The connection is gone: no answer comes any more. Those that wait, to be failed; what begins
   * from now on is for the next connection.
   */
  detach(): readonly PendingCall[] {
    this.#abandoned.clear();
    return [...this.#pending.values()];
  }
}

/** Hears nothing. */
const IGNORED: CallListener = { result() {}, failed() {} };

const MAX_ABANDONED = 1_000;
const EXCERPT_BYTES = 512;
const MAX_ERROR_BYTES = 1_048_576;

function judge(id: string, body: Buffer, listener: CallListener): void {
  const answer = readLongResult(body, id) ?? readAnswer(body, id);
  if (answer.kind === "bad")
    return listener.failed(
      plainFailure("body", body.toString("utf8", 0, EXCERPT_BYTES).trim()),
      null,
    );
  if (answer.kind === "foreign")
    return listener.failed(plainFailure("body", "the answer carries another id"), null);
  if (answer.kind === "result") return listener.result(body, answer);
  if (answer.end - answer.start > MAX_ERROR_BYTES)
    return listener.failed(plainFailure("body", "the error is too long"), null);
  const raw = body.subarray(answer.start, answer.end);
  listener.failed({ ...plainFailure("error", ""), ...readError(raw) }, raw);
}
