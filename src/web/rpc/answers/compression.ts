// Compresses long answers: negotiates the encoding and compresses off the event loop, with a
// bounded number of concurrent jobs. Knows nothing of JSON-RPC. Answers with a secret or a payment
// are never compressed.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGzip, createZstdCompress, type ZstdOptions } from "node:zlib";
import { isPublicAddress } from "../../../core/public-address.ts";
import { type Addressed, addressBehind, type TrustedProxies } from "../../http/client-address.ts";
import type { Headers } from "../../http/respond.ts";
import type { BodySink } from "../caller.ts";

/** Supported content encodings, the preferred one first. */
export const ENCODINGS = ["zstd", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Shorter answers are sent uncompressed. */
export const MIN_COMPRESSED_BYTES = 16_384;
/** Concurrent compression jobs; beyond that, answers are sent uncompressed. */
const MAX_JOBS = 2;
const GZIP = { level: 1 };
const ZSTD: ZstdOptions = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Compressed bytes that may wait for a slow reader before compression is paused. */
const UNSENT_BYTES = 262_144;

/** A body that is compressed on its way to another destination. */
export interface CompressedBody extends BodySink {
  /** Stops compressing: the client has left. */
  abandon(): void;
}

/** Compresses answers off the event loop, a few at a time. */
export class Compression {
  readonly #proxies: TrustedProxies;
  #jobs = 0;
  readonly #known = new Map<string, boolean>();

  /** Creates the compression of `server.compression: auto`. */
  constructor(proxies: TrustedProxies) {
    this.#proxies = proxies;
  }

  /** True for callers on public addresses: their answers vary by `Accept-Encoding`. */
  concerns(client: Addressed): boolean {
    const forwarded = client.header("x-forwarded-for");
    if (forwarded === undefined) return this.#isPublic(client.address);
    return isPublicAddress(addressBehind(client.address, forwarded, this.#proxies));
  }

  /** A job for one answer; null = the client accepts no encoding, or all jobs are in use. */
  take(client: Addressed): CompressionJob | null {
    const encoding = acceptedEncoding(client.header("accept-encoding"));
    if (encoding === null || this.#jobs >= MAX_JOBS) return null;
    this.#jobs++;
    let isOver = false;
    return createJob(encoding, () => {
      if (!isOver) this.#jobs--;
      isOver = true;
    });
  }

  /** Whether an address is public. Remembered, because many requests come from one address. */
  #isPublic(address: string): boolean {
    const found = this.#known.get(address);
    if (found !== undefined) return found;
    if (this.#known.size >= MAX_KNOWN_ADDRESSES) this.#known.clear();
    const judged = isPublicAddress(addressBehind(address, "", this.#proxies));
    this.#known.set(address, judged);
    return judged;
  }
}

const MAX_KNOWN_ADDRESSES = 4_096;

/** Adds `Content-Encoding`, and `Vary` for clients and caches. */
export function addEncoding(headers: Headers, encoding: Encoding | null): void {
  if (encoding !== null) headers.push("Content-Encoding", encoding);
  headers.push("Vary", "Accept-Encoding");
}

const MAX_HEADER_CHARS = 1_024;

/**
 * The supported encoding that `Accept-Encoding` prefers, zstd if it has no preference; null = none.
 */
export function acceptedEncoding(header: string | undefined): Encoding | null {
  if (header === undefined || header.length > MAX_HEADER_CHARS) return null;
  const weights = new Map<string, number>();
  for (const part of header.split(",")) {
    const [, name, weight] =
      /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*(?:;\s*q\s*=\s*(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/i.exec(
        part,
      ) ?? [];
    if (name !== undefined)
      weights.set(name.toLowerCase(), weight === undefined ? 1 : Number(weight));
  }
  let best: Encoding | null = null;
  let bestWeight = 0;
  for (const encoding of ENCODINGS) {
    const weight = weights.get(encoding) ?? weights.get("*") ?? 0;
    if (weight > bestWeight) best = encoding;
    bestWeight = Math.max(bestWeight, weight);
  }
  return best;
}

/** Permission to compress one answer. Must be used exactly once, by `whole` or by `body`. */
export type CompressionJob = ReturnType<typeof createJob>;

function createJob(encoding: Encoding, release: () => void) {
  return {
    encoding,
    /** Compresses a whole answer given in pieces; null = compression failed. */
    async whole(pieces: readonly Buffer[]): Promise<readonly Buffer[] | null> {
      const work = encoderOf(encoding);
      const parts: Buffer[] = [];
      try {
        await pipeline(Readable.from(pieces), work, async (made: AsyncIterable<Buffer>) => {
          for await (const part of made) parts.push(part);
        });
        return parts;
      } catch {
        return null;
      } finally {
        release();
      }
    },
    /**
     * Compresses everything written to it and passes it to `sink`. Calls `onProgress` whenever the
     * client has taken a part.
     */
    body: (sink: BodySink, onProgress: () => void): CompressedBody =>
      compressedBody(encoding, sink, { onProgress, release }),
  };
}

function encoderOf(encoding: Encoding) {
  return encoding === "gzip" ? createGzip(GZIP) : createZstdCompress(ZSTD);
}

function compressedBody(
  encoding: Encoding,
  sink: BodySink,
  { onProgress, release }: { readonly onProgress: () => void; readonly release: () => void },
): CompressedBody {
  const work = encoderOf(encoding);
  const abandon = (): void => {
    work.destroy();
    release();
  };
  work.on("data", (part: Buffer) => {
    if (sink.write(part, onProgress) <= UNSENT_BYTES) return;
    work.pause();
    sink.drained(() => work.resume());
  });
  work.once("end", () => {
    release();
    sink.end();
  });
  work.on("error", () => {
    abandon();
    sink.destroy();
  });
  return {
    write(chunk, written) {
      work.write(chunk, () => {
        onProgress();
        written();
      });
      // The compression thread reads `chunk` until `written` is called.
      return Math.max(1, work.writableLength);
    },
    end: () => void work.end(),
    drained(run) {
      if (work.writableNeedDrain) work.once("drain", run);
      else setImmediate(run);
    },
    destroy() {
      abandon();
      sink.destroy();
    },
    abandon,
  };
}
