// What the operator reads of a service of several workers: each worker is asked, and what they
// answer becomes one report.
import type { Bus, QuestionTopic } from "../core/workers/bus.ts";
import type { CallFilter } from "../observe/feed/call-filter.ts";
import type { HistoryQuery } from "../observe/history/history-report.ts";
import {
  mergeReports,
  type OperatorReports,
  ownReport,
  type ReportAnswers,
  type ReportParts,
  type ReportQuery,
} from "../observe/operator-report.ts";

interface Envelope {
  readonly answer: unknown;
}

const REPORT: QuestionTopic<ReportQuery, Envelope> = {
  name: "operator report",
  parse: parseQuery,
  parseAnswer: parseEnvelope,
};
/** A worker that does not answer within this time is left out. */
const WORKER_MS = 2_000;

/** Reports of the whole service; `bus` null = this process is all of it. */
export function operatorReports(parts: ReportParts, bus: Bus | null): OperatorReports {
  if (bus === null) return { read: (query) => Promise.resolve(ownReport(parts, query)) };
  bus.serve(REPORT, (query) => ({ answer: ownReport(parts, query) }));
  return {
    async read(query) {
      const asked = { topic: REPORT, message: query, timeoutMs: WORKER_MS };
      const replies = await Promise.all(bus.workers().map((id) => bus.request(id, asked)));
      const answers = replies.flatMap((reply) =>
        reply.ok ? [parseAnswer(query.kind, reply.value)] : [],
      );
      return answers.length === 0 ? null : mergeReports(query.kind, answers);
    },
  };
}

/** Another worker of this service runs the same code: what it answers is of the kind asked for. */
function parseAnswer<K extends ReportQuery["kind"]>(
  _kind: K,
  { answer }: Envelope,
): ReportAnswers[K] {
  return answer as ReportAnswers[K];
}

/** A question of another worker; null = no question. */
function parseQuery(value: unknown): ReportQuery | null {
  if (!isRecord(value)) return null;
  const { kind, id } = value;
  switch (kind) {
    case "errors":
    case "streams":
      return { kind };
    case "history":
      return isRecord(value["query"]) ? { kind, query: parseHistoryQuery(value["query"]) } : null;
    case "decisions":
      return isRecord(value["filter"]) && typeof value["limit"] === "number"
        ? { kind, filter: parseFilter(value["filter"]), limit: value["limit"] }
        : null;
    case "decision":
      return typeof id === "string" ? { kind, id } : null;
    case "what_if": {
      const { change } = value;
      if (typeof id !== "string" || !isRecord(change)) return null;
      return { kind, id, change: parseChange(change) };
    }
    default:
      return null;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function parseHistoryQuery(fields: Fields): HistoryQuery {
  return fields as unknown as HistoryQuery;
}

function parseFilter(fields: Fields): CallFilter {
  return fields as unknown as CallFilter;
}

function parseChange(fields: Fields): Extract<ReportQuery, { readonly kind: "what_if" }>["change"] {
  return fields as unknown as Extract<ReportQuery, { readonly kind: "what_if" }>["change"];
}

function parseEnvelope(value: unknown): Envelope | null {
  return isRecord(value) && "answer" in value ? { answer: value["answer"] } : null;
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null;
}
