// Reloading the configuration of the whole service from a worker: the supervisor reads the file and
// has all workers apply it. What was asked for at another node is done once, whichever worker hears
// of it.

import { type Bus, type QuestionTopic, SUPERVISOR } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import type { AskedReload } from "../../shared/changes/asked-reloads.ts";
import type { ReloadOutcome } from "../../web/api/parts.ts";

/** Reads the configuration again and applies it. */
export type Reload = () => Promise<ReloadOutcome>;

/** The same as another node was asked for it; null = this service has done that already. */
export type ReloadAsked = (asked: RemoteReload) => Promise<ReloadOutcome | null>;

/** A reload as far as it tells whether it was done. */
type RemoteReload = Pick<AskedReload, "id" | "ageMs">;

/** Does once what was asked for since this service was started at `startedAtMs`. */
export function createReloadAsked(
  { now }: Pick<Runtime, "now">,
  startedAtMs: number,
  reload: Reload,
): ReloadAsked {
  let lastId: string | null = null;
  return async ({ id, ageMs }) => {
    if (id === lastId) return null;
    lastId = id;
    // Before that the file was read as it is.
    return ageMs < now() - startedAtMs ? reload() : null;
  };
}

const MAX_TEXT = 100_000;

interface ReloadMessage {
  /** Null = it was asked for here. */
  readonly asked: RemoteReload | null;
}

interface ReloadReply {
  /** Null = it was done already. */
  readonly outcome: ReloadOutcome | null;
}

const RELOAD: QuestionTopic<ReloadMessage, ReloadReply> = { name: "operator.reload" };

/** Reading and checking a large file, and all workers applying it. */
const RELOAD_MS = 30_000;

/** Has workers reload. */
export function serveReload(bus: Bus, reload: Reload, reloadAsked: ReloadAsked): void {
  bus.serve(RELOAD, async ({ asked }) => {
    const outcome = asked === null ? await reload() : await reloadAsked(asked);
    if (outcome === null) return { outcome };
    const { problem, revision } = outcome;
    return { outcome: { problem: problem === null ? null : problem.slice(0, MAX_TEXT), revision } };
  });
}

/** Reloads from a worker. */
export async function reloadOver(bus: Bus): Promise<ReloadOutcome> {
  return (await requestOver(bus, null)) ?? NOT_READ;
}

/** Reloads from a worker as another node was asked for it. */
export function reloadAskedOver(bus: Bus): ReloadAsked {
  return (asked) => requestOver(bus, asked);
}

async function requestOver(bus: Bus, asked: RemoteReload | null): Promise<ReloadOutcome | null> {
  const message = { asked };
  const reply = await bus.request(SUPERVISOR, { topic: RELOAD, message, timeoutMs: RELOAD_MS });
  return reply.ok ? reply.value.outcome : NOT_READ;
}

const NOT_READ: ReloadOutcome = {
  problem: "the supervisor of this service did not answer in time",
  revision: null,
};
