// The operator's report on a service: asks each worker, and merges the answers.
import type { Bus, QuestionTopic } from "../../core/workers/bus.ts";
import {
  mergeReports,
  type OperatorReports,
  ownReport,
  type ReportAnswers,
  type ReportParts,
  type ReportQuery,
} from "../../observe/operator-report.ts";

type ReportKind = ReportQuery["kind"];
type QueryOf<K extends ReportKind> = Extract<ReportQuery, { readonly kind: K }>;

/** The answer of one process. */
interface ProcessReport<K extends ReportKind> {
  readonly answer: ReportAnswers[K];
}

type ReportTopics = {
  readonly [K in ReportKind]: QuestionTopic<QueryOf<K>, ProcessReport<K>>;
};

const TOPICS: ReportTopics = {
  decisions: topic("decisions"),
  decision: topic("decision"),
  what_if: topic("what_if"),
  errors: topic("errors"),
  streams: topic("streams"),
};
/** A worker that does not answer within this time is left out. */
const WORKER_MS = 2_000;

/** Reports of the whole service. */
export function operatorReports(parts: ReportParts, bus: Bus): OperatorReports {
  bus.serve(TOPICS.decisions, (query) => ({ answer: ownReport(parts, query) }));
  bus.serve(TOPICS.decision, (query) => ({ answer: ownReport(parts, query) }));
  bus.serve(TOPICS.what_if, (query) => ({ answer: ownReport(parts, query) }));
  bus.serve(TOPICS.errors, (query) => ({ answer: ownReport(parts, query) }));
  bus.serve(TOPICS.streams, (query) => ({ answer: ownReport(parts, query) }));
  return {
    async read(query) {
      const { kind } = query;
      const asked = { topic: TOPICS[kind], message: query, timeoutMs: WORKER_MS };
      const replies = await Promise.all(bus.workers().map((id) => bus.request(id, asked)));
      const answers = replies.flatMap((reply) => (reply.ok ? [reply.value.answer] : []));
      return answers.length === 0 ? null : mergeReports(kind, answers);
    },
  };
}

function topic<K extends ReportKind>(kind: K): QuestionTopic<QueryOf<K>, ProcessReport<K>> {
  return { name: `operator report: ${kind}` };
}
