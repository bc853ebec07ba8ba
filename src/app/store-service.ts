// The embedded store of a service of several workers: the supervisor has the file open, and the
// workers send it their statements over the bus.
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";
import type { SendStatement, StatementRequest, StatementResult } from "../store/statement.ts";
import type { StatementServer } from "../store/statement-server.ts";

export { serveFile } from "../store/store.ts";

const STATEMENT: QuestionTopic<StatementRequest, StatementResult> = { name: "statement" };
/** Longer than a transaction may take, and another one before it. */
const ANSWER_MS = 12_000;

/** Runs the statements of workers, in the process that has the file open. */
export function serveStatements(bus: Bus, statements: StatementServer): void {
  bus.serve(STATEMENT, (request, from) => statements.run(request, from));
}

/** Sends statements to the process that has the file open. */
export function statementsOver(bus: Bus): SendStatement {
  return async (message) => {
    const reply = await bus.request(SUPERVISOR, {
      topic: STATEMENT,
      message,
      timeoutMs: ANSWER_MS,
    });
    if (reply.ok) return reply.value;
    throw Object.assign(new Error(`the store cannot be asked: ${reply.reason}`), {
      code: "ETIMEDOUT",
    });
  };
}
