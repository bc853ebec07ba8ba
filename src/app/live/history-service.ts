// History of a service: gathered in the supervisor, or in the process that serves alone, every ten
// seconds and before it is read. Each process hands over its counts in numbered batches, so that
// nothing counts twice and counts outlive their worker.

import { setNewest } from "../../core/newest.ts";
import type { Bus, QuestionTopic } from "../../core/workers/bus.ts";
import type { ChangeEvent } from "../../observe/feed/feed-event.ts";
import { RecentChanges } from "../../observe/feed/recent-changes.ts";
import type { CountedStep } from "../../observe/history/history-counts.ts";
import type { HistoryQuery } from "../../observe/history/history-report.ts";
import type {
  OpenHours,
  ServiceHistory,
  StepsReport,
} from "../../observe/history/service-history.ts";
import { type StepBatch, StepOutbox } from "../../observe/history/step-outbox.ts";
import type { Incident } from "../../observe/incidents/incident.ts";
import { type Runtime, shared } from "../../runtime.ts";
import { callsOver, type RemoteObject, serveCalls } from "../../shared/processes/remote-calls.ts";
import { isStoreFailure } from "../../shared/store/store-failure.ts";

/** Where the steps of a process go, and where history of the whole service is read. */
export interface HistoryService {
  add(step: CountedStep): void;
  /** Null = the process that has them does not answer. */
  steps(query: HistoryQuery): Promise<StepsReport | null>;
  /** `none` = no database keeps hours. */
  hours(query: HistoryQuery): Promise<OpenHours | "none" | null>;
  /** The latest first. */
  changes(): Promise<readonly ChangeEvent[] | null>;
  /** Of this service. */
  incidents(): Promise<readonly Incident[] | null>;
  /** Hands over what was counted last, before the process ends. */
  end(): Promise<void>;
}

/** What this process tells of itself. */
export interface ProcessHistory {
  /** Ends the present step: what was counted comes to `add`. */
  refresh(): void;
  takeChanges(): readonly ChangeEvent[];
}

/** Which batch of which process was taken last. */
type TakenBatch = Pick<StepBatch, "process" | "number">;

const TAKE: QuestionTopic<TakenBatch, StepBatch> = { name: "take history" };

/** What the process that gathers history answers. */
interface GatheredHistory {
  steps(query: HistoryQuery): Promise<StepsReport>;
  hours(query: HistoryQuery): Promise<OpenHours | "none">;
  changes(): Promise<readonly ChangeEvent[]>;
  incidents(): Promise<readonly Incident[]>;
  /** Takes what a process counted last. */
  last(batch: StepBatch): Promise<void>;
}

const GATHERED: RemoteObject<GatheredHistory> = {
  name: "history of the service",
  methods: ["steps", "hours", "changes", "incidents", "last"],
  timeoutMs: 3_000,
};

/** How long the supervisor waits for a worker. */
const WORKER_MS = 1_000;
const GATHER_MS = 10_000;
/** Processes whose batches are remembered; there are as many as workers were started. */
const MAX_PROCESSES = 256;

/** The history of a service from the side of one worker. */
export function historyOver(bus: Bus, process: string, own: ProcessHistory): HistoryService {
  const outbox = new StepOutbox(process);
  const batch = (taken: number): StepBatch => {
    own.refresh();
    return outbox.batch(taken, own.takeChanges());
  };
  bus.serve(TAKE, (last) => batch(last.process === process ? last.number : 0));
  const gathered = callsOver(bus, GATHERED);
  return {
    add: (step) => outbox.add(step),
    steps: (query) => gathered.steps(query).catch(unanswered),
    hours: (query) => gathered.hours(query).catch(unanswered),
    changes: () => gathered.changes().catch(unanswered),
    incidents: () => gathered.incidents().catch(unanswered),
    async end() {
      // What was sent and not acknowledged comes again, under its number, and the rest after it.
      const first = batch(0);
      await gathered
        .last(first)
        .then(() => gathered.last(batch(first.number)))
        .catch(unanswered);
    },
  };
}

/** Null where nobody answered; every other failure is a bug. */
function unanswered(error: unknown): null {
  if (isStoreFailure(error)) return null;
  throw error;
}

/** What judges providers by the steps of all workers. */
export interface StepJudge {
  add(step: CountedStep): void;
  /** Judges what was added. */
  evaluate(): void;
  list(): readonly Incident[];
}

/** Gathers the history of all workers, and answers for it. `judge` null = nothing is judged. */
export function serveHistory(
  bus: Bus,
  runtime: Pick<Runtime, "after">,
  history: ServiceHistory,
  judge: StepJudge | null = null,
): void {
  const changes = new RecentChanges();
  /** The number of the last batch of each process. */
  const taken = new Map<string, number>();
  /** The process that has the place of a worker. */
  const processOf = new Map<string, string>();

  function receive({ process, number, ...batch }: StepBatch, from: string): void {
    processOf.set(from, process);
    if (number <= (taken.get(process) ?? 0)) return;
    setNewest(taken, process, number, MAX_PROCESSES);
    for (const step of batch.steps) {
      history.add(step);
      judge?.add(step);
    }
    for (const change of batch.changes) changes.add(change);
  }

  const gather = shared(async () => {
    await Promise.all(
      bus.workers().map(async (id) => {
        const process = processOf.get(id) ?? "";
        const message = { process, number: taken.get(process) ?? 0 };
        const reply = await bus.request(id, { topic: TAKE, message, timeoutMs: WORKER_MS });
        if (reply.ok) receive(reply.value, id);
      }),
    );
  });

  function again(): void {
    runtime.after(GATHER_MS, () => {
      void gather().then(() => judge?.evaluate());
      again();
    });
  }

  serveCalls(bus, GATHERED, (from) => ({
    last: async (batch) => receive(batch, from),
    async steps(query) {
      await gather();
      return history.report(query);
    },
    async hours(query) {
      await gather();
      return history.openHours(query) ?? "none";
    },
    async changes() {
      await gather();
      return changes.list();
    },
    incidents: async () => judge?.list() ?? [],
  }));
  again();
}
