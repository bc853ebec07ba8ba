// A table of all pages that answer GET: path and handler. Pages read memory only and answer
// synchronously.
import { readFileSync } from "node:fs";
import { fault } from "../../core/faults/rpc-fault.ts";
import type { DocumentQuery, ServiceDocuments } from "../../core/workers/service-documents.ts";
import {
  collectFamilies,
  familiesText,
  METRICS_TYPE,
  parseFamilies,
} from "../../observe/metric-families.ts";
import { METRICS } from "../../observe/metrics.ts";
import type { Observer } from "../../observe/observer.ts";
import type { MetricFacts, NodeLabels } from "../../observe/readings.ts";
import type { Runtime } from "../../runtime.ts";
import type { MemoryBudget } from "../../upstream/memory-budget.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { Documents } from "../discovery/documents.ts";
import { DOCUMENT_PATHS } from "../discovery/paths.ts";
import { READING_POLICY } from "../discovery/reading-page.ts";
import {
  type Headers,
  wantsHtml,
  write,
  writeDocument,
  writeFault,
  writeUnchanged,
} from "../http/respond.ts";
import {
  type Compression,
  ENCODINGS,
  type Encoding,
  MIN_COMPRESSED_BYTES,
} from "../rpc/answers/compression.ts";
import { ConsolePages, type PageHandler } from "./console-pages.ts";
import {
  chainsDocument,
  healthDocument,
  metricsDocument,
  readyDocument,
  type ServedCallers,
} from "./instance.ts";
import { isObject } from "./merge-documents.ts";

/** Values read at each scrape. */
type ScrapeFacts = "uptimeMs" | "residentBytes" | "cpuSeconds" | "inFlightBytes" | "realIds";

/** The data that pages show. */
export interface PageParts extends Omit<MetricFacts, ScrapeFacts> {
  readonly runtime: Runtime;
  readonly registry: ProfileRegistry;
  readonly observer: Observer;
  readonly budget: Pick<MemoryBudget, "used">;
  /** True = `/metrics` also has a listener of its own, so local clients get no privilege here. */
  readonly metricsApart: boolean;
  readonly isDraining: () => boolean;
  /** Which calls can be served without asking the database for what has changed. */
  readonly serves: () => ServedCallers;
  /** Documents of the whole service; null = this process is all of it. */
  readonly service: ServiceDocuments | null;
  /** How long the service ran before this process was started. */
  readonly uptimeBeforeMs: number;
  /** This node for those who may not see its name; null = it serves alone. */
  readonly publicNode: NodeLabels | null;
  /** Where this node runs; empty = not stated. */
  readonly region: string;
  readonly documents: () => Promise<Pick<Documents, "get">>;
  /** Null = documents are never compressed. */
  readonly compression: Compression | null;
}

const CHAIN_METRICS = "/api/metrics/";

/** The pages of an instance. */
export class Pages {
  readonly #parts: PageParts;
  readonly #startedAtMs: number;
  readonly #documents: ServiceDocuments;
  readonly #chainMetrics: PageHandler;
  readonly #document: PageHandler;
  readonly #console = new ConsolePages();
  readonly #pages: Readonly<Record<string, PageHandler>>;

  constructor(parts: PageParts) {
    this.#parts = parts;
    this.#startedAtMs = parts.runtime.now();
    this.#documents = parts.service ?? { read: (query, use) => use(this.own(query)) };
    this.#chainMetrics = (response, headers, request) =>
      this.#showChainMetrics(response, headers, request);
    this.#document = documentPage(parts);
    this.#pages = {
      "/api/chains": (response, headers) =>
        json(response, 200, headers, chainsDocument(parts.registry)),
      "/api/health": (response, headers) => {
        const { runtime, cluster, version, region } = parts;
        const now = { wallMs: runtime.wallMs(), uptimeMs: this.#uptimeMs(), cluster: cluster() };
        json(response, 200, headers, healthDocument({ ...now, version, region }));
      },
      "/api/ready": (response, headers, request) => this.#showReady(response, headers, request),
      "/metrics": (response, headers, request) => this.#showMetrics(response, headers, request),
      "/favicon.ico": iconPage(),
      "/": redirectTo("/dashboard"),
      "/dashboard/": redirectTo("/dashboard"),
      "/docs/": redirectTo("/docs"),
    };
  }

  /** The page at a path. */
  page(path: string): PageHandler | undefined {
    if (path.startsWith(CHAIN_METRICS)) return this.#chainMetrics;
    if (Object.hasOwn(this.#pages, path)) return this.#pages[path];
    return DOCUMENTS.has(path) ? this.#document : this.#console.page(path);
  }

  /** `/metrics`, with real provider ids; null = the other workers cannot be asked now. */
  operatorMetrics(use: (text: string | null) => void): void {
    this.#metrics(true, use);
  }

  /** What this process alone knows; null = it does not have such a document. */
  own(query: DocumentQuery): unknown {
    const { registry, observer, budget, isDraining, serves } = this.#parts;
    switch (query.kind) {
      case "metrics": {
        const { user, system } = process.cpuUsage();
        return collectFamilies(METRICS, {
          ...this.#parts,
          uptimeMs: this.#uptimeMs(),
          residentBytes: process.memoryUsage.rss(),
          cpuSeconds: (user + system) / 1e6,
          inFlightBytes: budget.used,
          realIds: query.realIds,
        });
      }
      case "ready":
        return readyDocument(registry, isDraining(), serves());
      case "chain": {
        const chain = registry.chain(query.chain);
        if (chain === undefined) return null;
        return metricsDocument(registry, chain, {
          ...this.#parts,
          realIds: query.realIds,
          openSockets: observer.sockets.open,
          series: (slug, name) => observer.series(slug, name),
        });
      }
    }
  }

  #uptimeMs(): number {
    return this.#parts.runtime.now() - this.#startedAtMs + this.#parts.uptimeBeforeMs;
  }

  #metrics(realIds: boolean, use: (text: string | null) => void): void {
    const { node, publicNode } = this.#parts;
    this.#documents.read({ kind: "metrics", realIds }, (document) => {
      const families = parseFamilies(document);
      use(families && familiesText(METRICS, families, realIds ? node : publicNode));
    });
  }

  #showMetrics(...[response, headers, request]: Parameters<PageHandler>): void {
    const { isOperator, isLocal, mayReadStatus } = request;
    const realIds = isOperator || (isLocal && !this.#parts.metricsApart);
    if (!realIds && !mayReadStatus) return writeFault(response, headers, METRICS_NOT_PUBLIC);
    this.#metrics(realIds, (text) => {
      if (text === null) return writeFault(response, headers, WORKERS_SILENT);
      writeDocument(response, METRICS_TYPE, headers, Buffer.from(text));
    });
  }

  #showReady(...[response, headers, { query }]: Parameters<PageHandler>): void {
    const asked = new URLSearchParams(query).get("for") === "traffic" ? "traffic" : "ready";
    this.#documents.read({ kind: "ready" }, (merged) => {
      const document = merged ?? this.own({ kind: "ready" });
      const isReady = isObject(document) && document[asked] === true;
      if (!isReady) headers.push("Retry-After", "1");
      json(response, isReady ? 200 : 503, headers, document);
    });
  }

  #showChainMetrics(...[response, headers, request]: Parameters<PageHandler>): void {
    const { path, isOperator, mayReadStatus } = request;
    if (!mayReadStatus) return writeFault(response, headers, NOT_PUBLIC);
    const chain = this.#parts.registry.chain(path.slice(CHAIN_METRICS.length));
    if (chain === undefined) return writeFault(response, headers, NO_SUCH_CHAIN);
    const query = { kind: "chain", chain: chain.chainName, realIds: isOperator } as const;
    this.#documents.read(query, (document) => {
      if (document === null) return writeFault(response, headers, WORKERS_SILENT);
      json(response, 200, headers, document);
    });
  }
}

const NOT_PUBLIC = fault("unauthorized", "the status of this instance is for those who sign in", {
  nextAction: "sign in at /dashboard, or send the operator token as Authorization: Bearer <token>",
});
/** No session opens `/metrics`: it is for scrapers. */
const METRICS_NOT_PUBLIC = fault("unauthorized", "the metrics of this instance are not public", {
  nextAction: "send the operator token as Authorization: Bearer <token>",
});
/** Between the death of a supervisor and the end of its workers. */
const WORKERS_SILENT = fault("unavailable", "the other workers of this service do not answer");
const NO_SUCH_CHAIN = fault("unknown_chain", "no chain has this name or id", {
  status: 404,
  nextAction: "GET /api/chains lists the chains",
});

function iconPage(): PageHandler {
  const icon = readFileSync(new URL("favicon.ico", import.meta.url));
  return (response, headers) => {
    headers.push("Cache-Control", "public, max-age=86400");
    writeDocument(response, "image/x-icon", headers, icon);
  };
}

/**
 * Serves a document: HTML for browsers, compressed if accepted, 304 if the client's copy is
 * current.
 */
function documentPage({
  documents,
  compression,
}: Pick<PageParts, "documents" | "compression">): PageHandler {
  const show: (...exchange: Parameters<PageHandler>) => Promise<void> = async (
    response,
    headers,
    { path, baseUrl, client, known },
  ) => {
    const found = (await documents()).get(path, baseUrl);
    if (found === undefined)
      return writeFault(response, headers, fault("not_found", "nothing is served at this path"));
    headers.push("Cache-Control", "no-cache", "Vary", "Host, Accept, Accept-Encoding");
    const isPage = found.page !== null && wantsHtml(client.header("accept"));
    if (isPage) headers.push("Content-Security-Policy", READING_POLICY);
    const { contentType, body, etag } = isPage ? await found.page() : found;
    const tags = [etag, ...ENCODINGS.map((encoding) => encodedTag(etag, encoding))];
    if (known !== undefined && tags.includes(known)) {
      headers.push("ETag", known);
      return writeUnchanged(response, headers);
    }
    const isCompressed =
      body.length >= MIN_COMPRESSED_BYTES && compression?.concerns(client) === true;
    const job = isCompressed ? compression.take(client) : null;
    const compressed = await job?.whole([body]);
    if (job == null || compressed == null) {
      headers.push("ETag", etag);
      return writeDocument(response, contentType, headers, body);
    }
    headers.push("Content-Encoding", job.encoding, "ETag", encodedTag(etag, job.encoding));
    writeDocument(response, contentType, headers, Buffer.concat(compressed));
  };
  const failed = fault("internal", "the service failed to render this document");
  return (response, headers, request) => {
    show(response, headers, request).catch(() => writeFault(response, headers, failed));
  };
}

/** The ETag of one encoding of a document. */
function encodedTag(etag: string, encoding: Encoding): string {
  return `${etag.slice(0, -1)}-${encoding}"`;
}

const DOCUMENTS: ReadonlySet<string> = new Set(Object.values(DOCUMENT_PATHS));

function redirectTo(path: string): PageHandler {
  return (response, headers) => {
    response.writeHead(302, [...headers, "Location", path]);
    response.end();
  };
}

function json(
  response: Parameters<PageHandler>[0],
  status: number,
  headers: Headers,
  document: unknown,
): void {
  headers.push("Cache-Control", "no-store");
  write(response, status, headers, [Buffer.from(JSON.stringify(document))]);
}
