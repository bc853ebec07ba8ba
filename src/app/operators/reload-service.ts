// Reloading the configuration of the whole service from a worker: the supervisor reads the file and
// has all workers apply it. A reload requested on another node runs once, whichever worker hears
// of it.

import { type Bus, type QuestionTopic, SUPERVISOR } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { AskedReload } from "../../shared/changes/asked-reloads.ts";
import type { ReloadOutcome } from "../../web/api/parts.ts";

/** Reads the configuration again and applies it. */
export type Reload = () => Promise<ReloadOutcome>;

/** A reload as far as it tells whether it was done; null = it is requested here. */
type RequestedReload = Pick<AskedReload, "id" | "ageMs"> | null;

/** Reloads the service; null = it has done what another node was asked for already. */
export type ServiceReload = (asked: RequestedReload) => Promise<ReloadOutcome | null>;

/** Does once what other nodes were asked for since this service was started at `startedAtMs`. */
export function createServiceReload(
  { now }: Pick<Runtime, "now">,
  startedAtMs: number,
  reload: Reload,
): ServiceReload {
  let lastId: string | null = null;
  return async (asked) => {
    if (asked === null) return reload();
    if (asked.id === lastId) return null;
    lastId = asked.id;
    // Before that the file was read as it is.
    return asked.ageMs < now() - startedAtMs ? reload() : null;
  };
}

const RELOAD: QuestionTopic<RequestedReload, ReloadOutcome | null> = { name: "operator.reload" };

/** Reading and checking a large file, and all workers applying it. */
const RELOAD_MS = 30_000;

/** Has workers reload. */
export function serveReload(bus: Bus, reload: ServiceReload): void {
  bus.serve(RELOAD, reload);
}

/** Reloads from a worker. */
export function reloadOver(bus: Bus): ServiceReload {
  return async (message) => {
    const reply = await bus.request(SUPERVISOR, { topic: RELOAD, message, timeoutMs: RELOAD_MS });
    return reply.ok ? reply.value : NOT_READ;
  };
}

/** The supervisor has not said what became of a reload. */
export const NOT_READ: ReloadOutcome = {
  problem: "the supervisor of this service did not answer in time",
  revision: null,
};
