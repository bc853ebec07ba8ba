// Where the records of the console are: in the store, else in the memory of one process of the
// service, which keeps them in `data_dir`; its workers reach them over the bus.
import { rename } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";
import { createMemoryRecords, type LastingRecords } from "../hosted/operator/memory-records.ts";
import { parseLastingRecords } from "../hosted/operator/parse-records.ts";
import type {
  ActionPage,
  ActionQuery,
  ConsoleSession,
  OperatorAction,
  OperatorCordon,
  OperatorRecords,
  ProviderRef,
} from "../hosted/operator/records.ts";
import { OPERATOR_FILE, readOperatorFile, writeOperatorFile } from "../store/operator-file.ts";

/** Where records are kept without a store. */
export interface RecordsPlace {
  readonly log: Pick<Logger, "error">;
  readonly dataDir: string;
}

/** Opens the records of a service that has no store. */
export async function openFileRecords(place: RecordsPlace): Promise<OperatorRecords> {
  const { dataDir, log } = place;
  return createMemoryRecords({
    kept: await lastingIn(place),
    keep: (records) =>
      writeOperatorFile(dataDir, records).catch((error: unknown) =>
        log.error(
          { problem: textOf(error) },
          "cordons and actions of operators cannot be kept in data_dir: they hold until the " +
            "service ends",
        ),
      ),
  });
}

const NOTHING_KEPT: LastingRecords = { cordons: [], actions: [] };

/** What was kept; a file that cannot be read is put aside. */
async function lastingIn({ log, dataDir }: RecordsPlace): Promise<LastingRecords> {
  const read = await readOperatorFile(dataDir).catch(() => ({}));
  if (read === null) return NOTHING_KEPT;
  const kept = parseLastingRecords(read);
  if (kept !== null) return kept;
  const file = join(dataDir, OPERATOR_FILE);
  await rename(file, `${file}.unreadable`).catch(() => {});
  log.error(
    `${OPERATOR_FILE} in data_dir cannot be read and was put aside: nobody is cordoned any more`,
  );
  return NOTHING_KEPT;
}

/** A call of another process to the records. */
type RecordsRequest =
  | { readonly kind: "addSession"; readonly session: ConsoleSession }
  | { readonly kind: "session"; readonly idHash: string; readonly nowMs: number }
  | { readonly kind: "endSession"; readonly idHash: string }
  | { readonly kind: "cordons" }
  | { readonly kind: "cordon"; readonly cordon: OperatorCordon }
  | { readonly kind: "uncordon"; readonly ref: ProviderRef }
  | { readonly kind: "addAction"; readonly action: OperatorAction }
  | { readonly kind: "actions"; readonly query: ActionQuery };

/** What the call returned. */
type RecordsAnswer =
  | { readonly kind: "flag"; readonly value: boolean }
  | { readonly kind: "session"; readonly value: ConsoleSession | null }
  | { readonly kind: "cordons"; readonly value: readonly OperatorCordon[] }
  | { readonly kind: "actions"; readonly value: ActionPage };

const RECORDS: QuestionTopic<RecordsRequest, RecordsAnswer> = { name: "operator-records" };
const ANSWER_MS = 2_000;

/** Serves the records to workers. */
export function serveRecords(bus: Bus, records: OperatorRecords): void {
  bus.serve(RECORDS, (request) => answerOf(records, request));
}

async function answerOf(records: OperatorRecords, request: RecordsRequest): Promise<RecordsAnswer> {
  switch (request.kind) {
    case "addSession":
      return { kind: "flag", value: await records.addSession(request.session) };
    case "session":
      return { kind: "session", value: await records.session(request.idHash, request.nowMs) };
    case "endSession":
      await records.endSession(request.idHash);
      return DONE;
    case "cordons":
      return { kind: "cordons", value: await records.cordons() };
    case "cordon":
      return { kind: "flag", value: await records.cordon(request.cordon) };
    case "uncordon":
      return { kind: "flag", value: await records.uncordon(request.ref) };
    case "addAction":
      await records.addAction(request.action);
      return DONE;
    case "actions":
      return { kind: "actions", value: await records.actions(request.query) };
  }
}

const DONE = { kind: "flag", value: true } as const;

/** The records that the supervisor has. */
export function recordsOver(bus: Bus): OperatorRecords {
  async function answer<A extends RecordsAnswer>(
    message: RecordsRequest,
    isExpected: (answer: RecordsAnswer) => answer is A,
  ): Promise<A> {
    const reply = await bus.request(SUPERVISOR, {
      topic: RECORDS,
      message,
      timeoutMs: ANSWER_MS,
    });
    if (!reply.ok) throw new Error("the supervisor of this service timed out");
    if (!isExpected(reply.value)) throw new Error("the supervisor answered another request");
    return reply.value;
  }
  const flag = async (message: RecordsRequest): Promise<boolean> =>
    (await answer(message, isFlag)).value;
  return {
    addSession: (session) => flag({ kind: "addSession", session }),
    session: async (idHash, nowMs) =>
      (await answer({ kind: "session", idHash, nowMs }, isSession)).value,
    async endSession(idHash) {
      await flag({ kind: "endSession", idHash });
    },
    cordons: async () => (await answer({ kind: "cordons" }, areCordons)).value,
    cordon: (cordon) => flag({ kind: "cordon", cordon }),
    uncordon: ({ profile, chain, provider }) =>
      flag({ kind: "uncordon", ref: { profile, chain, provider } }),
    async addAction(action) {
      await flag({ kind: "addAction", action });
    },
    actions: async (query) => (await answer({ kind: "actions", query }, areActions)).value,
  };
}

type AnswerOf<K extends RecordsAnswer["kind"]> = Extract<RecordsAnswer, { readonly kind: K }>;

const isFlag = (answer: RecordsAnswer): answer is AnswerOf<"flag"> => answer.kind === "flag";
const isSession = (answer: RecordsAnswer): answer is AnswerOf<"session"> =>
  answer.kind === "session";
const areCordons = (answer: RecordsAnswer): answer is AnswerOf<"cordons"> =>
  answer.kind === "cordons";
const areActions = (answer: RecordsAnswer): answer is AnswerOf<"actions"> =>
  answer.kind === "actions";

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
