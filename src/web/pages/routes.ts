// A table of all pages that answer GET: path and handler. Pages read memory only and answer
// synchronously.
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { fault } from "../../core/faults/rpc-fault.ts";
import type { DocumentQuery, ServiceDocuments } from "../../core/workers/service-documents.ts";
import { familiesText, METRICS_TYPE } from "../../observe/exposition.ts";
import { collectFamilies, parseFamilies } from "../../observe/metric-families.ts";
import { METRICS } from "../../observe/metrics.ts";
import type { Observer } from "../../observe/observer.ts";
import type { MetricFacts, NodeLabels } from "../../observe/readings.ts";
import type { Runtime } from "../../runtime.ts";
import type { MemoryBudget } from "../../upstream/memory-budget.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { Documents, SentDocument } from "../discovery/documents.ts";
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
import { ConsolePages, type PageHandler, type PageRequest } from "./console-pages.ts";
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
  readonly #source: MetricsSource;
  readonly #chainMetrics: PageHandler;
  readonly #document: PageHandler;
  readonly #console = new ConsolePages();
  readonly #pages: Readonly<Record<string, PageHandler>>;

  constructor(parts: PageParts) {
    this.#parts = parts;
    this.#startedAtMs = parts.runtime.now();
    const documents = parts.service ?? { read: (query, use) => use(this.own(query)) };
    this.#source = { ...parts, documents };
    this.#chainMetrics = chainMetricsPage(parts, documents);
    this.#document = documentPage(parts);
    this.#pages = {
      ...instancePages(parts, () => this.#uptimeMs(), documents),
      ...filePages(),
      "/metrics": (response, headers, { isOperator, isLocal, mayReadStatus }) => {
        const realIds = isOperator || (isLocal && !parts.metricsApart);
        if (!realIds && !mayReadStatus) return writeFault(response, headers, METRICS_NOT_PUBLIC);
        metricsText(this.#source, realIds, (text) => {
          if (text === null) return writeFault(response, headers, WORKERS_SILENT);
          writeDocument(response, METRICS_TYPE, headers, Buffer.from(text));
        });
      },
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
    metricsText(this.#source, true, use);
  }

  /** What this process alone knows; null = it does not have such a document. */
  own(query: DocumentQuery): unknown {
    const { registry, observer, isDraining, serves } = this.#parts;
    switch (query.kind) {
      case "metrics":
        return collectFamilies(METRICS, metricFacts(this.#parts, this.#uptimeMs(), query.realIds));
      case "ready":
        return readyDocument(registry, isDraining(), serves());
      case "chain": {
        const chain = registry.chain(query.chain);
        if (chain === undefined) return null;
        const { realIds } = query;
        const openSockets = observer.sockets.open;
        return metricsDocument(registry, chain, {
          ...this.#parts,
          realIds,
          openSockets,
          series: (slug, name) => observer.series(slug, name),
        });
      }
    }
  }

  #uptimeMs(): number {
    return this.#parts.runtime.now() - this.#startedAtMs + this.#parts.uptimeBeforeMs;
  }
}

function metricFacts(parts: PageParts, uptimeMs: number, realIds: boolean): MetricFacts {
  const { user, system } = process.cpuUsage();
  return {
    ...parts,
    uptimeMs,
    residentBytes: process.memoryUsage.rss(),
    cpuSeconds: (user + system) / 1e6,
    inFlightBytes: parts.budget.used,
    realIds,
  };
}

function metricsText(
  { node, publicNode, documents }: MetricsSource,
  realIds: boolean,
  use: (text: string | null) => void,
): void {
  documents.read({ kind: "metrics", realIds }, (document) => {
    const families = parseFamilies(document);
    const of = realIds ? node : publicNode;
    use(families === null ? null : familiesText(METRICS, families, of));
  });
}

/** Whose metrics they are, and where they are read. */
interface MetricsSource extends Pick<PageParts, "node" | "publicNode"> {
  readonly documents: ServiceDocuments;
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

function instancePages(
  { registry, runtime, version, isDraining, serves, region, cluster }: PageParts,
  uptimeMs: () => number,
  documents: ServiceDocuments,
): Readonly<Record<string, PageHandler>> {
  return {
    "/api/chains": (response, headers) => json(response, 200, headers, chainsDocument(registry)),
    "/api/health": (response, headers) => {
      const now = { wallMs: runtime.wallMs(), uptimeMs: uptimeMs(), cluster: cluster() };
      json(response, 200, headers, healthDocument({ ...now, version, region }));
    },
    "/api/ready": (response, headers, { query }) => {
      const asked = new URLSearchParams(query).get("for") === "traffic" ? "traffic" : "ready";
      documents.read({ kind: "ready" }, (merged) => {
        const document = merged ?? readyDocument(registry, isDraining(), serves());
        const isReady = isObject(document) && document[asked] === true;
        if (!isReady) headers.push("Retry-After", "1");
        json(response, isReady ? 200 : 503, headers, document);
      });
    },
  };
}

function filePages(): Readonly<Record<string, PageHandler>> {
  const favicon = readFileSync(new URL("favicon.ico", import.meta.url));
  return {
    "/favicon.ico": (response, headers) => {
      headers.push("Cache-Control", "public, max-age=86400");
      writeDocument(response, "image/x-icon", headers, favicon);
    },
  };
}

function chainMetricsPage({ registry }: PageParts, documents: ServiceDocuments): PageHandler {
  return (response, headers, { path, isOperator, mayReadStatus }) => {
    if (!mayReadStatus) return writeFault(response, headers, NOT_PUBLIC);
    const chain = registry.chain(path.slice(CHAIN_METRICS.length));
    if (chain === undefined)
      return writeFault(
        response,
        headers,
        fault("unknown_chain", "no chain has this name or id", {
          status: 404,
          nextAction: "GET /api/chains lists the chains",
        }),
      );
    const query = { kind: "chain", chain: chain.chainName, realIds: isOperator } as const;
    documents.read(query, (document) => {
      if (document === null) return writeFault(response, headers, WORKERS_SILENT);
      json(response, 200, headers, document);
    });
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
  return (response, headers, request) => {
    const send = async (): Promise<void> => {
      const found = (await documents()).get(request.path, request.baseUrl);
      if (found === undefined)
        return writeFault(response, headers, fault("not_found", "nothing is served at this path"));
      headers.push("Cache-Control", "no-cache", "Vary", "Host, Accept, Accept-Encoding");
      const isPage = found.page !== null && wantsHtml(request.client.header("accept"));
      const document = isPage ? await found.page() : found;
      if (isPage) headers.push("Content-Security-Policy", READING_POLICY);
      sendDocument({ response, headers, request, compression }, document);
    };
    send().catch(() =>
      writeFault(
        response,
        headers,
        fault("internal", "the service failed to render this document"),
      ),
    );
  };
}

/** A request for a document, with what is needed to answer it. */
interface DocumentExchange {
  readonly response: ServerResponse;
  readonly headers: Headers;
  readonly request: PageRequest;
  readonly compression: Compression | null;
}

function sendDocument(
  { response, headers, request, compression }: DocumentExchange,
  { contentType, body, etag }: SentDocument,
): void {
  const tags = [etag, ...ENCODINGS.map((encoding) => encodedTag(etag, encoding))];
  const writeAs = (tag: string, bytes: Buffer): void => {
    headers.push("ETag", tag);
    writeDocument(response, contentType, headers, bytes);
  };
  if (request.known !== undefined && tags.includes(request.known)) {
    headers.push("ETag", request.known);
    return writeUnchanged(response, headers);
  }
  const isLong = body.length >= MIN_COMPRESSED_BYTES;
  const job =
    isLong && compression?.concerns(request.client) === true
      ? compression.take(request.client)
      : null;
  if (job === null) return writeAs(etag, body);
  void job.whole([body]).then((compressed) => {
    if (compressed === null) return writeAs(etag, body);
    headers.push("Content-Encoding", job.encoding);
    writeAs(encodedTag(etag, job.encoding), Buffer.concat(compressed));
  });
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
