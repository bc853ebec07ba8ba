// Documents of the whole service: each worker provides its own, and the supervisor merges them. It
// keeps the counts of workers that have ended, so that no counter ever decreases.

import { keepNewest } from "../../core/newest.ts";
import {
  type Bus,
  type BusReply,
  type QuestionTopic,
  SUPERVISOR,
  type WorkerId,
} from "../../core/workers/bus.ts";
import type { DocumentQuery, ServiceDocuments } from "../../core/workers/service-documents.ts";
import {
  countsOfFamilies,
  type MetricFamily,
  mergeFamilies,
  parseFamilies,
} from "../../observe/metric-families.ts";
import { METRICS } from "../../observe/metrics.ts";
import { type Runtime, shared } from "../../runtime.ts";
import type { ReadyDocument } from "../../web/pages/instance.ts";
import {
  addCounts,
  isObject,
  mergeChainDocuments,
  mergeReadyDocuments,
} from "../../web/pages/merge-documents.ts";

export type { MetricFamily } from "../../observe/metric-families.ts";

type Document = unknown;

/** The document of one worker. */
const OWN: QuestionTopic<DocumentQuery, { readonly document: Document }> = { name: "own document" };
/** The document of the service. */
const MERGED: typeof OWN = { ...OWN, name: "document of the service" };

/** If a worker does not answer within this time, its last document is used. */
const WORKER_MS = 500;
const SERVICE_MS = 2_000;
/**
 * Interval at which workers are read without a request, so that the counts of a worker that dies
 * are mostly kept.
 */
const REFRESH_MS = 5_000;
/** A document that was not requested for this long is dropped. */
const KEPT_MS = 600_000;
const MAX_KEPT = 2_000;

/** Provides the documents of this worker, and reads those of the service. */
export function workerDocuments(
  bus: Bus,
  own: (query: DocumentQuery) => Document,
): ServiceDocuments {
  bus.serve(OWN, (query) => ({ document: own(query) }));
  return {
    read(query, use) {
      const asked = { topic: MERGED, message: query, timeoutMs: SERVICE_MS };
      void bus
        .request(SUPERVISOR, asked)
        .then((reply) => use(reply.ok ? reply.value.document : null));
    },
  };
}

/** The state of one document. */
interface Kept {
  readonly query: DocumentQuery;
  /** The last document of each live worker. */
  readonly last: Map<WorkerId, Document>;
  /** The counts of workers that have ended; null = none. */
  gone: Document;
  /** Reads it; no request gets values older than itself. */
  readonly read: () => Promise<Document>;
  usedAtMs: number;
}

export interface ReadingsParts {
  readonly bus: Bus;
  readonly runtime: Pick<Runtime, "now" | "after">;
  /** Metrics of the supervisor itself: memory and CPU time. */
  readonly ownFamilies: () => readonly MetricFamily[];
}

/** Serves the documents of the service, in the supervisor. */
export function serveServiceDocuments(parts: ReadingsParts): void {
  const { bus, runtime } = parts;
  const all = new Map<string, Kept>();
  for (const realIds of [true, false]) keptOf({ kind: "metrics", realIds });

  async function read(kept: Kept): Promise<Document> {
    const workers = bus.workers();
    const asked = { topic: OWN, message: kept.query, timeoutMs: WORKER_MS };
    const replies = await Promise.all(workers.map((id) => bus.request(id, asked)));
    for (const [n, id] of workers.entries()) keep(kept, id, replies[n]);
    return mergedDocument(kept, parts);
  }

  function keep(kept: Kept, id: WorkerId, reply: BusReply<{ document: Document }> | undefined) {
    if (reply?.ok !== true || reply.value.document === null) return;
    // The counts of a worker that has ended meanwhile are in `gone` already.
    if (livingOf(bus).includes(id)) kept.last.set(id, reply.value.document);
  }

  /** The state of a document, marked as requested now. */
  function keptOf(query: DocumentQuery): Kept {
    const key = JSON.stringify(query);
    const usedAtMs = runtime.now();
    const known = all.get(key);
    if (known !== undefined) {
      known.usedAtMs = usedAtMs;
      return known;
    }
    const kept: Kept = {
      query,
      last: new Map(),
      gone: null,
      read: shared(() => read(kept)),
      usedAtMs,
    };
    all.set(key, kept);
    keepNewest(all, MAX_KEPT);
    return kept;
  }

  function refresh(): void {
    runtime.after(REFRESH_MS, () => {
      const nowMs = runtime.now();
      for (const [key, kept] of [...all])
        if (kept.query.kind === "metrics" || nowMs - kept.usedAtMs <= KEPT_MS) void kept.read();
        // Counts of workers that have ended are kept.
        else if (kept.gone === null) all.delete(key);
      refresh();
    });
  }

  bus.onWorkers(() => {
    for (const kept of all.values()) retireOthers(kept, livingOf(bus));
  });
  bus.serve(MERGED, async (query) => ({ document: await keptOf(query).read() }));
  refresh();
}

/** Workers that have not ended: one that does not answer now may count on. */
function livingOf(bus: Bus): readonly WorkerId[] {
  return [...bus.workers(), ...bus.silent()];
}

/** Moves the counts of workers that have ended into `gone`. */
function retireOthers(kept: Kept, living: readonly WorkerId[]): void {
  for (const [id, document] of [...kept.last]) {
    if (living.includes(id)) continue;
    kept.last.delete(id);
    if (kept.query.kind === "metrics") {
      const counts = countsOfFamilies(METRICS, familiesOf(document));
      kept.gone = mergeFamilies(METRICS, [familiesOf(kept.gone), counts]);
    } else if (kept.query.kind === "chain" && isObject(document))
      kept.gone = addCounts(isObject(kept.gone) ? kept.gone : null, document);
  }
}

/** The merged document; null = no worker has provided one. */
function mergedDocument(
  { query, last, gone }: Kept,
  { bus, ownFamilies }: ReadingsParts,
): Document {
  const documents = [...last.values()];
  if (documents.length === 0) return null;
  switch (query.kind) {
    case "metrics": {
      const parts = [...documents.map(familiesOf), familiesOf(gone), ownFamilies()];
      return mergeFamilies(METRICS, parts);
    }
    case "chain":
      return mergeChainDocuments(documents.filter(isObject), isObject(gone) ? gone : null);
    case "ready":
      return mergeReadyDocuments(
        [...last].flatMap(([id, document]) =>
          isReady(document) && !bus.silent().includes(id) ? [document] : [],
        ),
      );
  }
}

function familiesOf(document: Document): readonly MetricFamily[] {
  return parseFamilies(document) ?? [];
}

function isReady(document: Document): document is ReadyDocument {
  return (
    isObject(document) && Array.isArray(document["chains"]) && Array.isArray(document["reasons"])
  );
}
