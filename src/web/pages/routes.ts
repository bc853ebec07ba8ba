// Every page that answers a GET, as rows of one table: path and handler. Pages read memory only and
// answer at once.

import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { fault } from "../../core/faults/rpc-fault.ts";
import type { MethodTable } from "../../core/rpc/method-table.ts";
import type { Observer } from "../../observe/observer.ts";
import type { PaymentGauges } from "../../payments/payments.ts";
import type { SessionGauges } from "../../payments/session/sessions.ts";
import type { Runtime } from "../../runtime.ts";
import type { MemoryBudget } from "../../upstream/memory-budget.ts";
import type { ProfileRegistry } from "../../upstream/registry/profile-registry.ts";
import type { Documents, SentDocument } from "../discovery/documents.ts";
import { DOCUMENT_PATHS } from "../discovery/operations.ts";
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
} from "../rpc/compression.ts";
import type { LegacyForms } from "../rpc/legacy-forms.ts";
import { chainsDocument, healthDocument, metricsDocument, readyDocument } from "./instance.ts";
import type { PageHandler, PageRequest } from "./page-handler.ts";
import { prometheusText } from "./prometheus.ts";
import type { StreamFacts } from "./stream-metrics.ts";

/** What the pages tell of. */
export interface PageParts extends StreamFacts {
  readonly runtime: Runtime;
  readonly directory: ProfileRegistry;
  readonly observer: Observer;
  readonly budget: Pick<MemoryBudget, "used">;
  readonly version: string;
  /**
   * True where `/metrics` has an address of its own: peers on this machine are then like any other
   * here.
   */
  readonly metricsApart: boolean;
  /** The method table as it is configured now. */
  readonly methods: () => MethodTable;
  readonly isDraining: () => boolean;
  readonly documents: Documents;
  /** Null = documents are never compressed. */
  readonly compression: Compression | null;
  readonly legacyForms: Pick<LegacyForms, "counts">;
  /** How payments stand; null = none are taken. */
  readonly payments: () => PaymentGauges | null;
  /** How pay-per-call stands; null = there is none. */
  readonly sessions: () => SessionGauges | null;
}

const CHAIN_METRICS = "/api/metrics/";
/** The text format of Prometheus. */
export const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** The pages. */
export interface Pages {
  /** The page of a path. */
  page(path: string): PageHandler | undefined;
  /** `/metrics`, with real provider ids. */
  operatorMetrics(): string;
}

/** Every page of an instance. */
export function createPages(parts: PageParts): Pages {
  const document = documentPage(parts);
  const { runtime, directory, observer } = parts;
  const startedAtMs = runtime.now();
  const uptimeMs = (): number => runtime.now() - startedAtMs;
  const dashboard = readFileSync(new URL("dashboard/index.html", import.meta.url));
  const favicon = readFileSync(new URL("dashboard/favicon.ico", import.meta.url));
  const pages: Readonly<Record<string, PageHandler>> = {
    "/api/chains": (response, headers) => json(response, 200, headers, chainsDocument(directory)),
    "/api/health": (response, headers) =>
      json(
        response,
        200,
        headers,
        healthDocument({ wallMs: runtime.wallMs(), uptimeMs: uptimeMs(), version: parts.version }),
      ),
    "/api/ready": (response, headers) => {
      const { ready, document } = readyDocument(directory, parts.isDraining());
      if (!ready) headers.push("Retry-After", "1");
      json(response, ready ? 200 : 503, headers, document);
    },
    "/metrics": (response, headers, { isOperator, isLocal }) => {
      const realIds = isOperator || (isLocal && !parts.metricsApart);
      writeDocument(response, METRICS_TYPE, headers, Buffer.from(metricsText(realIds)));
    },
    "/dashboard": (response, headers) => {
      headers.push("Content-Security-Policy", DASHBOARD_POLICY);
      writeDocument(response, "text/html; charset=utf-8", headers, dashboard);
    },
    "/favicon.ico": (response, headers) => {
      headers.push("Cache-Control", "public, max-age=86400");
      writeDocument(response, "image/x-icon", headers, favicon);
    },
    "/": redirectTo("/dashboard"),
    "/dashboard/": redirectTo("/dashboard"),
    "/docs/": redirectTo("/docs"),
  };

  function metricsText(realIds: boolean): string {
    const { user, system } = process.cpuUsage();
    return prometheusText(directory, observer, {
      uptimeMs: uptimeMs(),
      residentBytes: process.memoryUsage.rss(),
      cpuSeconds: (user + system) / 1e6,
      inFlightBytes: parts.budget.used,
      realIds,
      ...parts,
    });
  }

  function chainMetrics(
    response: Parameters<PageHandler>[0],
    headers: Headers,
    { path, isOperator }: PageRequest,
  ): void {
    const chain = directory.chain(path.slice(CHAIN_METRICS.length));
    if (chain === undefined)
      writeFault(
        response,
        headers,
        fault("unknown_chain", "no chain has this name or id", {
          status: 404,
          nextAction: "GET /api/chains lists the chains",
        }),
      );
    else
      json(
        response,
        200,
        headers,
        metricsDocument(directory, chain, {
          ...parts,
          realIds: isOperator,
          series: observer.series,
          openSockets: observer.sockets.open,
        }),
      );
  }

  return {
    page(path) {
      if (path.startsWith(CHAIN_METRICS)) return chainMetrics;
      return Object.hasOwn(pages, path) ? pages[path] : DOCUMENTS.has(path) ? document : undefined;
    },
    operatorMetrics: () => metricsText(true),
  };
}

/**
 * Serves the documents: as pages to browsers, compressed where that is accepted, and 304 where the
 * caller has them already.
 */
function documentPage({
  documents,
  compression,
}: Pick<PageParts, "documents" | "compression">): PageHandler {
  return (response, headers, request) => {
    const found = documents.get(request.path, request.baseUrl);
    if (found === undefined)
      return writeFault(response, headers, fault("not_found", "nothing is served at this path"));
    headers.push("Cache-Control", "no-cache", "Vary", "Host, Accept, Accept-Encoding");
    if (found.page === null || !wantsHtml(request.asker.header("accept")))
      return sendDocument({ response, headers, request, compression }, found);
    headers.push("Content-Security-Policy", READING_POLICY);
    found.page().then(
      (page) => sendDocument({ response, headers, request, compression }, page),
      () =>
        writeFault(
          response,
          headers,
          fault("internal", "the service failed to render this document"),
        ),
    );
  };
}

interface Sending {
  readonly response: ServerResponse;
  readonly headers: Headers;
  readonly request: PageRequest;
  readonly compression: Compression | null;
}

function sendDocument(
  { response, headers, request, compression }: Sending,
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
    isLong && compression?.concerns(request.asker) === true
      ? compression.take(request.asker)
      : null;
  if (job === null) return writeAs(etag, body);
  void job.whole([body]).then((compressed) => {
    if (compressed === null) return writeAs(etag, body);
    headers.push("Content-Encoding", job.encoding);
    writeAs(encodedTag(etag, job.encoding), Buffer.concat(compressed));
  });
}

/** Each encoding of a document has an ETag of its own. */
function encodedTag(etag: string, encoding: Encoding): string {
  return `${etag.slice(0, -1)}-${encoding}"`;
}

/** It takes the operator's token: nobody may frame it, and nothing on it may send elsewhere. */
const DASHBOARD_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src " +
  "'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";
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
