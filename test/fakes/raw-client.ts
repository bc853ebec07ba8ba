// A client that writes and reads HTTP/1.1 by hand: the bytes of requests are the test's, answers
// are taken from the wire one by one. Knows nothing of what they say.
import { connect, type Socket } from "node:net";

/** One answer as it came over the wire. */
export interface WireAnswer {
  readonly status: string;
  /** Header lines in the order they came. */
  readonly lines: readonly string[];
  readonly body: Buffer;
}

/** Takes down what a test or a run started. */
export interface Cleanup {
  after(run: () => void): void;
}

const FIRST_BYTES = 4_096;

/** A client's end of a connection. */
export class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  isClosed = false;
  #wake: () => void = () => {};
  /** What arrived, from `#taken` to `#end`. It grows by doubling: an answer may have megabytes. */
  #arrived: Buffer = Buffer.allocUnsafe(FIRST_BYTES);
  #taken = 0;
  #end = 0;

  constructor(t: Cleanup, port: number) {
    this.socket = connect({ port, host: "127.0.0.1", noDelay: true });
    t.after(() => this.socket.destroy());
    this.closed = new Promise((resolve) => {
      this.socket.on("close", () => {
        this.isClosed = true;
        this.#wake();
        resolve();
      });
    });
    this.socket.on("error", () => {});
    this.socket.on("data", (chunk: Buffer) => {
      this.#keep(chunk);
      this.#wake();
    });
  }

  /** What arrived and has not been taken as an answer yet. */
  get rest(): Buffer {
    return this.#arrived.subarray(this.#taken, this.#end);
  }

  /** The next answer; throws when the connection ends before. */
  async answer(): Promise<WireAnswer> {
    const answer = await this.answerOrEnd();
    if (answer === null)
      throw new Error(`closed after ${JSON.stringify(this.rest.toString("latin1", 0, 300))}`);
    return answer;
  }

  /** The next answer; null = the connection ended before. */
  async answerOrEnd(): Promise<WireAnswer | null> {
    for (;;) {
      const found = takeAnswer(this.rest);
      if (found !== null) {
        this.#taken = this.#end - found.rest.length;
        return found.answer;
      }
      if (this.isClosed) return null;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Answers that were taken are views of the memory: none of it is written twice. */
  #keep(chunk: Buffer): void {
    if (this.#end + chunk.length > this.#arrived.length) {
      const { rest } = this;
      this.#arrived = Buffer.allocUnsafe(2 * (rest.length + chunk.length) + FIRST_BYTES);
      rest.copy(this.#arrived);
      this.#taken = 0;
      this.#end = rest.length;
    }
    this.#end += chunk.copy(this.#arrived, this.#end);
  }
}

/** A client whose connection is open. */
export async function openRawClient(t: Cleanup, port: number): Promise<RawClient> {
  const client = new RawClient(t, port);
  await new Promise<void>((resolve) => client.socket.once("connect", resolve));
  return client;
}

const WITHOUT_BODY = /^HTTP\/1\.1 (?:1\d\d|204|304)/;

/** The first whole answer in these bytes; null = it is not all there. */
export function takeAnswer(
  bytes: Buffer,
): { readonly answer: WireAnswer; readonly rest: Buffer } | null {
  const end = bytes.indexOf("\r\n\r\n");
  if (end === -1) return null;
  const [status = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
  const after = bytes.subarray(end + 4);
  if (WITHOUT_BODY.test(status)) return { answer: { status, lines, body: EMPTY }, rest: after };
  if (lines.includes("Transfer-Encoding: chunked")) {
    const found = takeChunks(after);
    return found && { answer: { status, lines, body: found.body }, rest: found.rest };
  }
  const length = Number(/^content-length: (\d+)$/im.exec(lines.join("\n"))?.[1] ?? 0);
  if (after.length < length) return null;
  return {
    answer: { status, lines, body: after.subarray(0, length) },
    rest: after.subarray(length),
  };
}

/** The data of a chunked body and what follows it; null = it is not all there. */
function takeChunks(bytes: Buffer): { readonly body: Buffer; readonly rest: Buffer } | null {
  const parts: Buffer[] = [];
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd === -1) return null;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    if (bytes.length < lineEnd + 2 + size + 2) return null;
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
    if (size === 0) return { body: Buffer.concat(parts), rest: bytes.subarray(at) };
  }
}

const EMPTY = Buffer.alloc(0);
