// Reloading the configuration of the whole service from a worker: the supervisor reads the file and
// has all workers apply it.
import { type Bus, type QuestionTopic, SUPERVISOR } from "../core/workers/bus.ts";
import type { ReloadOutcome } from "../web/api/operator-providers.ts";

/** Reads the configuration again and applies it. */
export type Reload = () => Promise<ReloadOutcome>;

const MAX_TEXT = 100_000;

const RELOAD: QuestionTopic<true, ReloadOutcome> = {
  name: "operator.reload",
  parse: (value) => (value === true ? true : null),
  parseAnswer(value) {
    if (typeof value !== "object" || value === null || !("problem" in value)) return null;
    const { problem } = value;
    const revision =
      "revision" in value && typeof value.revision === "string" ? value.revision : null;
    if (problem === null) return { problem, revision };
    return typeof problem === "string" && problem.length <= MAX_TEXT ? { problem, revision } : null;
  },
};
/** Reading and checking a large file, and all workers applying it. */
const RELOAD_MS = 30_000;

/** Has workers reload. */
export function serveReload(bus: Bus, reload: Reload): void {
  bus.serve(RELOAD, async () => {
    const { problem, revision } = await reload();
    return { problem: problem === null ? null : problem.slice(0, MAX_TEXT), revision };
  });
}

/** Reloads from a worker. */
export async function reloadOver(bus: Bus): Promise<ReloadOutcome> {
  const asked = { topic: RELOAD, message: true, timeoutMs: RELOAD_MS } as const;
  const reply = await bus.request(SUPERVISOR, asked);
  if (reply.ok) return reply.value;
  return { problem: "the supervisor of this service did not answer in time", revision: null };
}
