// A minimal HTTP/1.1 parser for both ends of the benchmark: splits a byte stream into messages,
// however it is chunked. Knows no JSON-RPC and trusts its peer's framing.

/** Receives messages in turn; `piece` is valid only during the call. */
export interface MessageSink {
  /** Start line and headers, without the empty line. */
  readonly head: (head: string) => void;
  readonly body: (piece: Buffer) => void;
  readonly end: () => void;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");
const NOTHING = Buffer.alloc(0);
/** A longer head or chunk-size line means a broken peer. */
const MAX_PENDING_BYTES = 65_536;

/**
 * Parses messages framed by `Content-Length` or chunked encoding; a message with neither has no
 * body.
 */
export class MessageReader {
  readonly #sink: MessageSink;
  #pending: Buffer = NOTHING;
  #state: "head" | "length" | "chunk_size" | "chunk" | "chunk_end" | "trailer" = "head";
  #leftBytes = 0;

  constructor(sink: MessageSink) {
    this.#sink = sink;
  }

  /** True between messages: no message is partly read. */
  get idle(): boolean {
    return this.#state === "head" && this.#pending.length === 0;
  }

  /** Parses the next bytes of the stream; throws on unreadable framing. */
  push(bytes: Buffer): void {
    const chunk = this.#pending.length === 0 ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = NOTHING;
    let at = 0;
    while (at < chunk.length) {
      const next = this.#step(chunk, at);
      if (next === null) {
        if (chunk.length - at > MAX_PENDING_BYTES)
          throw new Error("a head or chunk line without end");
        this.#pending = Buffer.from(chunk.subarray(at));
        return;
      }
      at = next;
    }
  }

  /** Consumes one element from `at`; null = it is not complete yet. */
  #step(chunk: Buffer, at: number): number | null {
    switch (this.#state) {
      case "head":
        return this.#head(chunk, at);
      case "length":
      case "chunk":
        return this.#data(chunk, at);
      case "chunk_size":
      case "chunk_end":
      case "trailer":
        return this.#line(chunk, at);
    }
  }

  #head(chunk: Buffer, at: number): number | null {
    const end = chunk.indexOf(HEAD_END, at);
    if (end < 0) return null;
    const head = chunk.toString("latin1", at, end);
    this.#sink.head(head);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    if (length !== undefined) {
      this.#leftBytes = Number(length);
      this.#state = "length";
      if (this.#leftBytes === 0) this.#finish();
    } else if (/\r\ntransfer-encoding: *chunked/i.test(head)) this.#state = "chunk_size";
    else this.#finish();
    return end + HEAD_END.length;
  }

  #data(chunk: Buffer, at: number): number {
    const end = Math.min(chunk.length, at + this.#leftBytes);
    this.#sink.body(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end));
    this.#leftBytes -= end - at;
    if (this.#leftBytes === 0) {
      if (this.#state === "length") this.#finish();
      else this.#state = "chunk_end";
    }
    return end;
  }

  #line(chunk: Buffer, at: number): number | null {
    const end = chunk.indexOf(LINE_END, at);
    if (end < 0) return null;
    if (this.#state === "chunk_end") this.#state = "chunk_size";
    else if (this.#state === "trailer") {
      if (end === at) this.#finish();
    } else {
      this.#leftBytes = Number.parseInt(chunk.toString("latin1", at, end), 16);
      if (!Number.isInteger(this.#leftBytes)) throw new Error("a chunk size that is no number");
      this.#state = this.#leftBytes === 0 ? "trailer" : "chunk";
    }
    return end + LINE_END.length;
  }

  #finish(): void {
    this.#state = "head";
    this.#sink.end();
  }
}
