// Reloading the configuration of the whole service from a worker: the supervisor reads the file and
// has all workers apply it.
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";

const MAX_TEXT = 100_000;

const RELOAD: QuestionTopic<true, { readonly problem: string | null }> = {
  name: "operator.reload",
  parse: (value) => (value === true ? true : null),
  parseAnswer(value) {
    if (typeof value !== "object" || value === null || !("problem" in value)) return null;
    const { problem } = value;
    if (problem === null) return { problem };
    return typeof problem === "string" && problem.length <= MAX_TEXT ? { problem } : null;
  },
};
/** Reading and checking a large file, and all workers applying it. */
const RELOAD_MS = 30_000;

/** Has workers reload; `reload` resolves with why it was refused, or null. */
export function serveReload(bus: Bus, reload: () => Promise<string | null>): void {
  bus.serve(RELOAD, async () => {
    const problem = await reload();
    return { problem: problem === null ? null : problem.slice(0, MAX_TEXT) };
  });
}

/** Reloads from a worker. */
export async function reloadOver(bus: Bus): Promise<string | null> {
  const asked = { topic: RELOAD, message: true, timeoutMs: RELOAD_MS } as const;
  const reply = await bus.request(SUPERVISOR, asked);
  return reply.ok ? reply.value.problem : "the supervisor of this service did not answer in time";
}
