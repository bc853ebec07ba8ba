// Serves the console, the web application that `console/` is built into: one document for all of
// its addresses, and files with hashed names, compressed when they were built. Builds nothing.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { fault } from "../../core/faults/rpc-fault.ts";
import type { Addressed } from "../http/client-address.ts";
import { type Headers, writeDocument, writeFault, writeUnchanged } from "../http/respond.ts";

/** Where `bin/build-console.ts` puts the files. */
const BUILT: string = join(import.meta.dirname, "../../../node_modules/.console");
const PAGE = "/dashboard";
const ASSETS = `${PAGE}/assets/`;
/** Deeper addresses are no pages. */
const MAX_DEPTH = 8;

/** Paths that clients did not resolve lead nowhere. */
const DOT_SEGMENT = /\/\.{1,2}(?:\/|$)/;

/** Nothing inline, nothing from elsewhere, no framing. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const TYPES: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
};

/** Encodings that files are kept in, the smallest first, by their file extension. */
const ENCODINGS = [
  { name: "br", extension: ".br" },
  { name: "gzip", extension: ".gz" },
] as const;

const NOT_BUILT = fault("unavailable", "the console was not built", {
  nextAction: "start the service with `npm start`, which builds it",
});

/** The files of the console in memory. */
interface ConsoleFiles {
  /** With `ROOT` where the path to the folder of the console belongs. */
  readonly document: string;
  readonly assets: ReadonlyMap<string, Asset>;
}

interface Asset {
  readonly contentType: string;
  readonly etag: string;
  readonly plain: Buffer;
  readonly encoded: readonly { readonly name: string; readonly bytes: Buffer }[];
}

/** The pages of the console; its files are read at the first request, and kept. */
export class ConsolePages {
  readonly #folder: string;
  #files: ConsoleFiles | null = null;

  constructor(folder: string = BUILT) {
    this.#folder = folder;
  }

  /** The handler of a path below `/dashboard`; undefined = the path is another one. */
  page(path: string): PageHandler | undefined {
    const isPage = path === PAGE || path.startsWith(`${PAGE}/`);
    if (!isPage || DOT_SEGMENT.test(path)) return undefined;
    return path.startsWith(ASSETS) ? this.#showAsset : this.#showDocument;
  }

  #read(): ConsoleFiles | null {
    this.#files ??= readFiles(this.#folder);
    return this.#files;
  }

  /**
   * Every address of the console gets the same document; its script reads the address. Paths are
   * relative, so that the service may stand below any path of a proxy.
   */
  readonly #showDocument: PageHandler = (response, headers, { path, known }) => {
    const files = this.#read();
    if (files === null) return writeFault(response, headers, NOT_BUILT);
    const depth = path.split("/").length - 2;
    if (depth > MAX_DEPTH) return writeFault(response, headers, NOTHING);
    const root = depth === 0 ? "dashboard/" : "../".repeat(depth - 1);
    const body = Buffer.from(files.document.replaceAll("ROOT", root));
    const etag = etagOf(body);
    headers.push("Cache-Control", "no-cache", "Content-Security-Policy", POLICY);
    headers.push("Referrer-Policy", "no-referrer", "Cross-Origin-Opener-Policy", "same-origin");
    headers.push("ETag", etag);
    if (known === etag) return writeUnchanged(response, headers);
    writeDocument(response, "text/html; charset=utf-8", headers, body);
  };

  readonly #showAsset: PageHandler = (response, headers, { path, client, known }) => {
    const asset = this.#read()?.assets.get(path.slice(ASSETS.length));
    if (asset === undefined) return writeFault(response, headers, NOTHING);
    const accepted = client.header("accept-encoding") ?? "";
    const chosen = asset.encoded.find(({ name }) => accepts(accepted, name));
    const etag = chosen === undefined ? asset.etag : `${asset.etag.slice(0, -1)}-${chosen.name}"`;
    headers.push("Cache-Control", "public, max-age=31536000, immutable", "Vary", "Accept-Encoding");
    headers.push("ETag", etag);
    if (known === etag) return writeUnchanged(response, headers);
    if (chosen !== undefined) headers.push("Content-Encoding", chosen.name);
    writeDocument(response, asset.contentType, headers, chosen?.bytes ?? asset.plain);
  };
}

const NOTHING = fault("not_found", "nothing is served at this path");

/** Null = nothing was built. */
function readFiles(folder: string): ConsoleFiles | null {
  const document = join(folder, "index.html");
  if (!existsSync(document)) return null;
  const names = readdirSync(folder).filter((name) => /\.(?:js|css)$/.test(name));
  return {
    document: readFileSync(document, "utf8"),
    assets: new Map(names.map((name) => [name, readAsset(folder, name)])),
  };
}

function readAsset(folder: string, name: string): Asset {
  const plain = readFileSync(join(folder, name));
  return {
    contentType: TYPES[name.replace(/.*\./, "")] ?? "application/octet-stream",
    etag: etagOf(plain),
    plain,
    encoded: ENCODINGS.map(({ name: encoding, extension }) => ({
      name: encoding,
      bytes: readFileSync(join(folder, `${name}${extension}`)),
    })),
  };
}

function etagOf(bytes: Buffer): string {
  return `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"`;
}

/** Whether `Accept-Encoding` names an encoding, and not with weight 0. */
function accepts(header: string, encoding: string): boolean {
  return header.split(",").some((part) => {
    const [name = "", ...parameters] = part
      .trim()
      .toLowerCase()
      .split(/\s*;\s*/);
    return name === encoding && !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
  });
}

/** The parts of a GET request that a page may depend on. */
export interface PageRequest {
  readonly path: string;
  /** What follows the `?`. */
  readonly query: string;
  /** Base URL of this service as the caller uses it, without a trailing slash. */
  readonly baseUrl: string;
  /** `If-None-Match`. */
  readonly known: string | undefined;
  /** Decides whether the answer may be compressed. */
  readonly client: Addressed;
  /** True = authenticated as the operator: real provider ids may be shown. */
  readonly isOperator: boolean;
  /** True = what the instance and its providers do may be shown. */
  readonly mayReadStatus: boolean;
  /** True = a process on this machine sent the request on its own behalf. */
  readonly isLocal: boolean;
}

/** Answers a GET request. */
export type PageHandler = (
  response: ServerResponse,
  headers: Headers,
  request: PageRequest,
) => void;
