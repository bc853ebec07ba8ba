// Compression of long answers for callers far away: which encoding a caller takes, and the work
// itself, which is done off the event loop and bounded. Knows nothing of JSON-RPC. Answers that
// hold a secret or a payment never come here.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { constants, createGzip, createZstdCompress, type ZstdOptions } from "node:zlib";
import { isPublicAddress } from "../../core/public-address.ts";
import { addressBehind, type TrustedProxies } from "../http/client-address.ts";
import type { Headers } from "../http/respond.ts";

/** The encodings that answers are compressed with, the preferred one first. */
export const ENCODINGS = ["zstd", "gzip"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Answers shorter than this are sent as they are. */
export const MIN_COMPRESSED_BYTES = 16_384;
/** Compressions at once; beyond, answers are sent as they are. */
const MAX_JOBS = 2;
const GZIP = { level: 1 };
const ZSTD: ZstdOptions = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };
/** Compressed bytes that may wait for a slow reader before no more are made. */
const UNSENT_BYTES = 262_144;

/** What of a request decides whether its answer may be compressed. */
export interface CompressionClient {
  readonly address: string;
  header(name: string): string | undefined;
}

/** Where the bytes of an answer go that is sent while it arrives. */
export interface BodySink {
  /**
   * Returns the bytes that still wait to be sent; 0 = `chunk` is no longer needed. `written` is
   * called once it is not, whenever that is.
   */
  write(chunk: Buffer, written: () => void): number;
  end(): void;
  /** Calls back once when nothing waits to be sent. */
  drained(run: () => void): void;
  /** Ends the connection without completing the answer. */
  destroy(): void;
}

/** A body that is compressed on its way to another one. */
export interface CompressedBody extends BodySink {
  /** Stops the work: nobody takes the answer any more. */
  abandon(): void;
}

/** Leave to compress one answer. It must be used, by `whole` or `body`, once. */
export interface CompressionJob {
  readonly encoding: Encoding;
  /** Compresses a whole answer, which is never put together; null = the work failed. */
  whole(pieces: readonly Buffer[]): Promise<readonly Buffer[] | null>;
  /**
   * Compresses what is written on its way to `sink`. `moved` is called whenever some of it was
   * taken.
   */
  body(sink: BodySink, onProgress: () => void): CompressedBody;
}

/** Compresses long answers. */
export interface Compression {
  /** True for a caller on a public address: its answers depend on `Accept-Encoding`. */
  concerns(asker: CompressionClient): boolean;
  /** Leave for one answer; null = the caller takes none, or enough work is under way. */
  take(asker: CompressionClient): CompressionJob | null;
}

/** Compression by `server.compression`; off = null. */
export function createCompression(proxies: TrustedProxies): Compression {
  const state: State = { jobs: 0 };
  const known = new Map<string, boolean>();

  /** Whether an address is public; remembered, since connections ask again and again. */
  function isPublic(address: string): boolean {
    const found = known.get(address);
    if (found !== undefined) return found;
    if (known.size >= MAX_KNOWN_ADDRESSES) known.clear();
    const judged = isPublicAddress(addressBehind(address, "", proxies));
    known.set(address, judged);
    return judged;
  }

  return {
    concerns(asker) {
      const forwarded = asker.header("x-forwarded-for");
      if (forwarded === undefined) return isPublic(asker.address);
      return isPublicAddress(addressBehind(asker.address, forwarded, proxies));
    },
    take(asker) {
      const encoding = acceptedEncoding(asker.header("accept-encoding"));
      if (encoding === null || state.jobs >= MAX_JOBS) return null;
      state.jobs++;
      return createJob(
        encoding,
        onceOnly(() => state.jobs--),
      );
    },
  };
}

const MAX_KNOWN_ADDRESSES = 4_096;

interface State {
  jobs: number;
}

/** Adds what tells a client and the caches between how the body is encoded. */
export function addEncoding(headers: Headers, encoding: Encoding | null): void {
  if (encoding !== null) headers.push("Content-Encoding", encoding);
  headers.push("Vary", "Accept-Encoding");
}

const MAX_HEADER_CHARS = 1_024;

/**
 * The encoding that an `Accept-Encoding` prefers among ours, zstd where it does not care; null =
 * none.
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

function createJob(encoding: Encoding, release: () => void): CompressionJob {
  return {
    encoding,
    async whole(pieces) {
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
    body: (sink, onProgress) => compressedBody(encoding, sink, { onProgress, release }),
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
      // Read by another thread until `written` says that it was.
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

function onceOnly(run: () => void): () => void {
  let done = false;
  return () => {
    if (!done) run();
    done = true;
  };
}
