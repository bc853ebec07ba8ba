// Incidents of a service: judged in the process that gathers history, after each step; published to
// all workers, written to the store where there is one, and read from both.
import type { Logger } from "pino";
import { errorText } from "../../core/fields.ts";
import type { Bus, Topic } from "../../core/workers/bus.ts";
import { readIncidents, writeIncidents } from "../../hosted/operator/stored-incidents.ts";
import type { CountedStep } from "../../observe/history/history-counts.ts";
import { type Incident, joinIncidents, MAX_CLOSED } from "../../observe/incidents/incident.ts";
import { IncidentBook, type IncidentView } from "../../observe/incidents/incident-book.ts";
import { INCIDENT_CAUSES, PROVIDER_STATES } from "../../observe/incidents/judge.ts";
import { type Runtime, within } from "../../runtime.ts";
import type { Store } from "../../shared/store/store.ts";
import { isStoreFailure } from "../../shared/store/store-failure.ts";
import type { IncidentTable } from "../../shared/store/tables-cluster.ts";

/** What was known after a step, to all workers. */
export const INCIDENT_VIEW: Topic<IncidentView> = { name: "incidents" };

/** What incidents are kept with. */
export interface IncidentServiceParts {
  readonly runtime: Pick<Runtime, "after" | "wallMs" | "random">;
  readonly log: Pick<Logger, "warn">;
  readonly bus: Pick<Bus, "publish">;
  /** Null = nowhere. */
  readonly store: (() => Promise<Store>) | null;
  /** Hears what is known, in a process that serves alone; absent = nobody does. */
  readonly hear?: ((view: IncidentView) => void) | undefined;
}

/** Open incidents are written again after so long. */
const WRITE_MS = 60_000;
/** A service that has not written an open incident for so long has ended, or has lost the store. */
const SILENT_MS = 3 * WRITE_MS;
const CLOSE_WRITE_MS = 5_000;
/** Incidents that wait for a store that is away. */
const MAX_UNWRITTEN = 1_000;
const ID_DIGITS = 20;
const TIME_DIGITS = 9;

/** Judges providers, and keeps what was wrong. */
export class IncidentService {
  readonly #parts: IncidentServiceParts;
  readonly #book: IncidentBook;
  /** Closed incidents that are not written, by id. */
  readonly #unwritten = new Map<string, Incident>();
  #writing: Promise<void> = Promise.resolve();
  #writtenMs = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(parts: IncidentServiceParts) {
    const { runtime } = parts;
    this.#parts = parts;
    this.#book = new IncidentBook((startedMs) => newId(startedMs, runtime), runtime.wallMs());
  }

  add(step: CountedStep): void {
    this.#book.add(step, this.#parts.runtime.wallMs());
  }

  list(): readonly Incident[] {
    return this.#book.list();
  }

  /** Judges what was added. */
  evaluate(): void {
    const { bus, runtime, hear, store } = this.#parts;
    const nowMs = runtime.wallMs();
    const view = this.#book.evaluate(nowMs);
    bus.publish(INCIDENT_VIEW, view);
    hear?.(view);
    if (store === null) return;
    for (const incident of view.changed)
      if (incident.endedMs !== null && this.#unwritten.size < MAX_UNWRITTEN)
        this.#unwritten.set(incident.id, incident);
    if (view.changed.length === 0 && Math.abs(nowMs - this.#writtenMs) < WRITE_MS) return;
    this.#writtenMs = nowMs;
    this.#writing = this.#writing.then(() => this.#write());
  }

  /** Writes what is left. */
  close(): Promise<void> {
    const { runtime, store } = this.#parts;
    if (store === null) return Promise.resolve();
    const last = this.#writing.then(() => this.#write());
    return within(runtime, CLOSE_WRITE_MS, "writing the incidents", last).catch(this.#failed);
  }

  async #write(): Promise<void> {
    const { store, runtime } = this.#parts;
    const open = this.#book.list().filter(({ endedMs }) => endedMs === null);
    const closed = [...this.#unwritten.values()];
    if (store === null || open.length + closed.length === 0) return;
    const seenMs = runtime.wallMs();
    try {
      const rows = [...open, ...closed].map((incident) => rowOf(incident, seenMs));
      const to = await store();
      for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT)
        await writeIncidents(to, rows.slice(from, from + ROWS_PER_STATEMENT));
      for (const { id } of closed) this.#unwritten.delete(id);
      this.#isFailing = false;
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Tells of it once for each time that the database ceases to answer. */
  readonly #failed = (error: unknown): void => {
    const problem = errorText(error);
    if (!this.#isFailing)
      this.#parts.log.warn({ problem }, "incidents cannot be written now: they wait in memory");
    this.#isFailing = true;
  };
}

const ROWS_PER_STATEMENT = 200;

/** Later ones come later in order. */
function newId(startedMs: number, { random }: Pick<Runtime, "random">): string {
  const time = Math.floor(startedMs).toString(36).padStart(TIME_DIGITS, "0");
  let chance = "";
  while (chance.length < ID_DIGITS - TIME_DIGITS) chance += Math.floor(random() * 36).toString(36);
  return `inc_${time}${chance}`;
}

function rowOf(incident: Incident, seenMs: number): IncidentTable {
  const { id, profile, chain, provider, cause, state, words, endedMs, goodSinceMs } = incident;
  return {
    ...{ id, profile, chain, cause, words },
    provider: provider?.id ?? "",
    alias: provider?.alias ?? "",
    state: state ?? "",
    started_at: wholeMs(incident.startedMs),
    ended_at: endedMs === null ? null : wholeMs(endedMs),
    good_since: goodSinceMs === null ? null : wholeMs(goodSinceMs),
    seen_at: wholeMs(seenMs),
    attempts: BigInt(incident.attempts),
    failed: BigInt(incident.failed),
    failed_calls: BigInt(incident.failedCalls),
    users: BigInt(incident.users),
  };
}

function wholeMs(ms: number): bigint {
  return BigInt(Math.round(ms));
}

/** An incident as it was written; one of a service that ended was over when it was seen last. */
function incidentOf(row: IncidentTable, nowMs: number): Incident | null {
  const { id, profile, chain, words } = row;
  const cause = INCIDENT_CAUSES.find((name) => name === row.cause);
  // A cause that only another version knows.
  if (cause === undefined) return null;
  const seenMs = Number(row.seen_at);
  const isLost = row.ended_at === null && nowMs - seenMs > SILENT_MS;
  const writtenMs = row.ended_at === null ? null : Number(row.ended_at);
  const endedMs = isLost ? seenMs : writtenMs;
  return {
    ...{ id, profile, chain, cause, words, endedMs },
    provider: row.provider === "" ? null : { id: row.provider, alias: row.alias },
    state: PROVIDER_STATES.find((name) => name === row.state) ?? null,
    startedMs: Number(row.started_at),
    goodSinceMs: row.good_since === null || endedMs !== null ? null : Number(row.good_since),
    attempts: Number(row.attempts),
    failed: Number(row.failed),
    failedCalls: Number(row.failed_calls),
    users: Number(row.users),
  };
}

/** For so long what the store has is given again: anybody may ask. */
const FRESH_MS = 10_000;

/** Reads incidents: those of this service, and those that the store has; null = no answer. */
export function createIncidentReader(
  service: { readonly incidents: () => Promise<readonly Incident[] | null> },
  store: Store | null,
  { now, wallMs }: Pick<Runtime, "now" | "wallMs">,
): () => Promise<readonly Incident[] | null> {
  let read: { readonly atMs: number; readonly rows: Promise<readonly IncidentTable[]> } | null =
    null;

  function stored(): Promise<readonly IncidentTable[]> {
    if (store === null) return Promise.resolve([]);
    if (read === null || now() - read.atMs > FRESH_MS)
      read = { atMs: now(), rows: readIncidents(store, MAX_CLOSED).catch(noneIfSilent) };
    return read.rows;
  }

  return async () => {
    const [own, rows] = await Promise.all([service.incidents(), stored()]);
    if (own === null) return null;
    const known = new Set(own.map(({ id }) => id));
    const others = rows.flatMap((row) =>
      known.has(row.id) ? [] : (incidentOf(row, wallMs()) ?? []),
    );
    return joinIncidents([...own, ...others]);
  };
}

/** Where the store is silent, what is in memory is all there is to tell. */
function noneIfSilent(error: unknown): readonly IncidentTable[] {
  if (isStoreFailure(error)) return [];
  throw error;
}
