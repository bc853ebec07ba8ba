// One keep-alive connection that sends one request at a time and checks the answer. Knows no
// schedule: other code decides when it sends.
import { connect, type Socket } from "node:net";
import { isRecord } from "./child.ts";
import { MessageReader } from "./http1.ts";
import {
  type AnswerShape,
  expectedAnswer,
  largePrefix,
  largeRest,
  requestBody,
  type Workload,
} from "./workload.ts";

/** Where a caller connects and what it sends. */
export interface CallerOptions {
  readonly port: number;
  readonly path: string;
  readonly workload: Workload;
  /** Size and framing of long answers. */
  readonly shape: AnswerShape;
  /** Whether small answers may say the same in other bytes, as those of other gateways do. */
  readonly byMeaning: boolean;
  /** Called once per request; `fault` null = the answer was right. */
  readonly done: (caller: Caller, number: number, dueMs: number, fault: string | null) => void;
}

/**
 * One in this many large answers is compared byte by byte; all are checked for length, id and
 * number.
 */
const LARGE_SAMPLE = 8;
/** Read buffer shared by all connections: its contents are consumed before the next read. */
const READ_BYTES = 262_144;
const RECONNECT_MS = 10;
/** The constant part of long answers by size, shared by all connections. */
const RESTS = new Map<number, Buffer>();

function restOf(bytes: number): Buffer {
  const rest = RESTS.get(bytes) ?? largeRest(bytes);
  RESTS.set(bytes, rest);
  return rest;
}

/** One connection, which reconnects before the next request after a failure. */
export class Caller {
  readonly #options: CallerOptions;
  readonly #head: string;
  readonly #readBuffer: Buffer;
  readonly #rest: Buffer;
  /** True = answers are compared by prefix, length and samples instead of in full. */
  readonly #long: boolean;
  #socket: Socket | null = null;
  #reader: MessageReader | null = null;
  #number = 0;
  #dueMs = 0;
  #busy = false;
  #written = false;
  #lastOnSocket = false;
  #closed = false;
  #status = "";
  #text = "";
  #bodyBytes = 0;
  #differs = false;

  constructor(options: CallerOptions, readBuffer: Buffer) {
    this.#options = options;
    this.#readBuffer = readBuffer;
    this.#long = options.workload === "large" || options.workload === "sized";
    this.#rest = restOf(options.shape.bytes);
    const length = requestBody(options.workload, 100_000_000, options.shape).length;
    this.#head =
      `POST ${options.path} HTTP/1.1\r\nHost: 127.0.0.1:${options.port}\r\nUser-Agent: ` +
      `bench\r\nAccept: */*\r\nContent-Type: application/json\r\nContent-Length: ` +
      `${length}\r\n\r\n`;
  }

  /** A read buffer that the callers of one thread share. */
  static readBuffer(): Buffer {
    return Buffer.allocUnsafeSlow(READ_BYTES);
  }

  /** Resolves once connected, or after the first failed attempt. */
  open(): Promise<void> {
    return new Promise((resolve) => {
      const buffer = this.#readBuffer;
      const onread = {
        buffer,
        callback: (length: number): boolean => {
          this.#take(length === buffer.length ? buffer : buffer.subarray(0, length));
          return true;
        },
      };
      const socket = connect(
        { host: "127.0.0.1", port: this.#options.port, noDelay: true, onread },
        resolve,
      );
      this.#socket = socket;
      this.#reader = new MessageReader({
        head: (head) => this.#onHead(head),
        body: (piece) => this.#onBody(piece),
        end: () => this.#onEnd(),
      });
      socket.once("error", () => socket.destroy());
      socket.once("end", () => socket.destroy());
      socket.once("close", () => {
        resolve();
        if (this.#socket !== socket) return;
        this.#socket = null;
        if (!this.#closed && this.#busy && this.#written)
          this.#finish("connection closed before the whole answer");
      });
    });
  }

  /** Sends the request of `number`; `dueMs` is returned with the result. */
  send(number: number, dueMs: number): void {
    this.#number = number;
    this.#dueMs = dueMs;
    this.#busy = true;
    this.#status = "";
    this.#text = "";
    this.#bodyBytes = 0;
    this.#differs = false;
    this.#written = false;
    if (this.#socket === null || this.#socket.destroyed)
      setTimeout(() => void this.open().then(() => this.#write()), RECONNECT_MS);
    else this.#write();
  }

  /** Closes the connection; a request still under way is not reported. */
  close(): void {
    this.#closed = true;
    this.#socket?.destroy();
  }

  #write(): void {
    if (this.#closed) return;
    this.#written = true;
    if (this.#socket === null) this.#finish("connection refused");
    else
      this.#socket.write(
        this.#head + requestBody(this.#options.workload, this.#number, this.#options.shape),
        "latin1",
      );
  }

  #take(bytes: Buffer): void {
    try {
      this.#reader?.push(bytes);
    } catch (error) {
      this.#socket?.destroy();
      if (this.#busy) this.#finish(`broken framing: ${String(error)}`);
    }
  }

  #onHead(head: string): void {
    this.#status = head.slice(0, 12);
    this.#lastOnSocket = /\r\nconnection: *close/i.test(head);
  }

  #onBody(piece: Buffer): void {
    if (!this.#long) {
      this.#text += piece.toString("latin1");
      return;
    }
    const prefixBytes = largePrefix(String(this.#number), String(this.#number)).length;
    const textBytes = Math.min(piece.length, Math.max(0, prefixBytes - this.#bodyBytes));
    if (textBytes > 0) this.#text += piece.toString("latin1", 0, textBytes);
    if (this.#number % LARGE_SAMPLE === 0 && textBytes < piece.length) {
      const from = this.#bodyBytes + textBytes - prefixBytes;
      const rest = this.#rest;
      if (
        piece.compare(
          rest,
          from,
          Math.min(rest.length, from + piece.length - textBytes),
          textBytes,
        ) !== 0
      )
        this.#differs = true;
    }
    this.#bodyBytes += piece.length;
  }

  #onEnd(): void {
    if (this.#lastOnSocket) {
      this.#socket?.destroy();
      this.#socket = null;
    }
    if (this.#busy) this.#finish(this.#fault());
  }

  #fault(): string | null {
    const { workload, shape, byMeaning } = this.#options;
    if (this.#status !== "HTTP/1.1 200") return `${this.#status} ${this.#text.slice(0, 200)}`;
    if (workload === "large" || workload === "sized") {
      if (this.#text !== largePrefix(String(this.#number), String(this.#number)))
        return `wrong beginning: ${this.#text.slice(0, 200)}`;
      if (this.#bodyBytes !== shape.bytes)
        return `${this.#bodyBytes} bytes instead of ${shape.bytes}`;
      return this.#differs ? "altered bytes in a large answer" : null;
    }
    const expected = expectedAnswer(workload, this.#number);
    return this.#text === expected || (byMeaning && saysTheSame(this.#text, expected))
      ? null
      : `wrong answer: ${this.#text.slice(0, 200)}`;
  }

  #finish(fault: string | null): void {
    this.#busy = false;
    this.#options.done(this, this.#number, this.#dueMs, fault);
  }
}

/** Whether two texts are equal answers, whatever the order of members, and of items of a batch. */
export function saysTheSame(text: string, expected: string): boolean {
  const [one, other] = [answersIn(text), answersIn(expected)];
  return one !== null && one === other;
}

function answersIn(text: string): string | null {
  try {
    const parsed: unknown = JSON.parse(text);
    const all: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
    const told = all.map((one) =>
      isRecord(one) ? JSON.stringify([one["id"], one["result"]]) : "",
    );
    return `${Array.isArray(parsed)}${told.sort().join()}`;
  } catch {
    return null;
  }
}
