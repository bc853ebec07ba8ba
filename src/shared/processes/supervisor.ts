// The supervisor: starts the workers, replaces those that die, passes configuration and drain on to
// all of them, and is the middle of their bus. Serves no traffic. Knows no configuration and no
// process: both come from outside.
import type { Logger } from "pino";
import type { Bus, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";
import { newProcessId } from "../nodes/node-rows.ts";
import { BusHub } from "./bus-hub.ts";
import { ConnectionOffers, type ConnectionTarget } from "./connection-offers.ts";
import type { Command, Ports, Report, WorkerMessage } from "./control.ts";
import type { RawConnection } from "./raw-connection.ts";
import { ResponseWatch } from "./response-watch.ts";
import { afterDeath, delayMs } from "./restarts.ts";

/** A worker's process, as the supervisor holds it. */
export interface WorkerProcess {
  /** `taken` is called once the process has taken the message, or never will. */
  send(message: object, taken: () => void): void;
  /** Gives it a connection, which is not held here any more; false = it cannot be given. */
  sendConnection(message: object, connection: RawConnection): boolean;
  /** Gives up the copy of its listening sockets that is kept here for its successor. */
  closeListeners(): void;
  /** Ends it at once. */
  kill(): void;
}

/** What a worker's process tells. */
export interface WorkerEvents {
  /** `connection`: what came with the message; null = nothing did. */
  message(message: WorkerMessage, connection: RawConnection | null): void;
  /** Once, however it ended. */
  ended(how: string): void;
}

/** What the supervisor works with. */
export interface SupervisorParts<C> {
  readonly runtime: Runtime;
  readonly log: Logger;
  /** Number of workers. */
  readonly count: number;
  readonly startProcess: (events: WorkerEvents) => WorkerProcess;
  readonly config: C;
  readonly version: string;
  /** Hears that the process of a worker has ended, however. */
  readonly onWorkerEnd: (id: WorkerId) => void;
  /** A worker that does not serve within this time is ended, and has failed. */
  readonly startMs: (config: C) => number;
  /** A worker that does not answer for this time is ended and replaced. */
  readonly hungMs: (config: C) => number;
  /** A drain that takes longer is ended. */
  readonly drainMs: (config: C) => number;
}

/** How the start of a service went. */
export type Started =
  | { readonly ok: true; readonly ports: Ports }
  | { readonly ok: false; readonly problem: string };

const RELOAD_MS = 5_000;

/** What became of a reload. */
type ReloadOutcome =
  | { readonly kind: "taken"; readonly problem: null }
  /** A worker has not answered yet. */
  | { readonly kind: "late"; readonly problem: string }
  | { readonly kind: "refused"; readonly problem: string };

const LATE: ReloadOutcome = {
  kind: "late",
  problem: "a worker did not answer in time; it takes the configuration as soon as it answers",
};

/** The place of one worker. */
class Slot implements ConnectionTarget {
  readonly id: WorkerId;
  /** Null = it is dead and waits for its next start. */
  process: WorkerProcess | null = null;
  /** When it began to serve; null = it does not. */
  servingSinceMs: number | null = null;
  /** Watches it while it serves. */
  watch: ResponseWatch | null = null;
  /** Whether it has served or failed for the first time. */
  isTried = false;
  /** Its recent deaths. */
  deaths = 0;
  /** Why it could not start; null = nothing is known. */
  problem: string | null = null;
  cancelTimer: () => void = () => {};

  constructor(id: WorkerId) {
    this.id = id;
  }

  send<C>(command: Command<C>): void {
    this.process?.send(command, () => {});
  }

  offer(offer: number): void {
    this.send({ kind: "offer", offer });
  }

  give(connection: RawConnection): boolean {
    return this.process?.sendConnection({ kind: "connection" }, connection) === true;
  }
}

/** Running workers. */
export class Supervisor<C> {
  /** The supervisor's end of the bus. */
  readonly bus: Bus;
  /** What the service is known by; each of its workers is told. */
  readonly serviceId: string;
  /** Resolves once every worker serves or has failed for the first time. */
  readonly started: Promise<Started>;
  readonly #parts: SupervisorParts<C>;
  readonly #hub: BusHub;
  readonly #slots: readonly Slot[];
  readonly #offers: ConnectionOffers;
  readonly #startedWallMs: number;
  #config: C;
  #ports: Ports | null = null;
  #settleStart: (started: Started) => void = () => {};
  #isEnding = false;
  #onAllEnded: () => void = () => {};
  #lastReload = 0;
  readonly #reloads = new Map<number, (id: WorkerId, problem: string | null) => void>();

  constructor(parts: SupervisorParts<C>) {
    this.#parts = parts;
    this.#config = parts.config;
    this.#startedWallMs = parts.runtime.wallMs();
    this.serviceId = newProcessId(parts.runtime);
    this.#hub = new BusHub(parts.runtime, (error) =>
      parts.log.error({ err: error }, "bug: a message between workers was not handled"),
    );
    this.bus = this.#hub.bus;
    this.#offers = new ConnectionOffers(parts.runtime, () => this.#serving());
    this.started = new Promise((resolve) => {
      this.#settleStart = resolve;
    });
    this.#slots = Array.from({ length: parts.count }, (_, index) => new Slot(String(index + 1)));
    for (const slot of this.#slots) this.#start(slot);
  }

  /** The places of its workers. */
  get places(): readonly WorkerId[] {
    return this.#slots.map(({ id }) => id);
  }

  /** Gives all workers another configuration. Resolves with why one did not take it, or null. */
  async reload(config: C): Promise<string | null> {
    const id = ++this.#lastReload;
    const asked = new Set(this.#slots.flatMap(({ process }) => process ?? []));
    const outcome = await this.#askAll(id, config);
    // Another reload began meanwhile: that one decides.
    if (id !== this.#lastReload) return outcome.problem;
    if (outcome.kind !== "refused") this.#config = config;
    // All workers end with one configuration: also a worker started meanwhile with the previous
    // one, and a worker that accepted what another worker refused.
    for (const slot of this.#slots) {
      const { process } = slot;
      if (process !== null && asked.has(process) === (outcome.kind === "refused"))
        slot.send({ kind: "reload", id, config: this.#config });
    }
    return outcome.problem;
  }

  #askAll(id: number, config: C): Promise<ReloadOutcome> {
    const waiting = new Set(this.#slots.filter(({ process }) => process !== null));
    return new Promise((resolve) => {
      let outcome: ReloadOutcome = { kind: "taken", problem: null };
      const done = (): void => {
        cancel();
        this.#reloads.delete(id);
        resolve(outcome);
      };
      const cancel = this.#parts.runtime.after(RELOAD_MS, () => {
        if (outcome.kind === "taken") outcome = LATE;
        done();
      });
      this.#reloads.set(id, (worker, why) => {
        if (why !== null && outcome.kind === "taken") outcome = { kind: "refused", problem: why };
        for (const slot of waiting) if (slot.id === worker) waiting.delete(slot);
        if (waiting.size === 0) done();
      });
      for (const slot of waiting) slot.send({ kind: "reload", id, config });
      if (waiting.size === 0) done();
    });
  }

  /** Lets all workers finish what they accepted; false = some had to be ended. */
  async drain(): Promise<boolean> {
    this.#isEnding = true;
    // Before the workers close theirs: who holds a listening socket last has to accept from it, or
    // the kernel takes connections that nobody serves.
    for (const { process } of this.#slots) process?.closeListeners();
    for (const slot of this.#slots) {
      slot.watch?.stop();
      if (slot.process === null) slot.cancelTimer();
      slot.send({ kind: "drain" });
    }
    let inOrder = true;
    await new Promise<void>((resolve) => {
      const cancel = this.#parts.runtime.after(this.#parts.drainMs(this.#config), () => {
        inOrder = false;
        this.kill();
      });
      this.#onAllEnded = () => {
        cancel();
        resolve();
      };
      this.#checkAllEnded();
    });
    return inOrder;
  }

  /** Ends all workers at once. */
  kill(): void {
    this.#isEnding = true;
    for (const { process } of this.#slots) process?.kill();
  }

  #start(slot: Slot): void {
    const process = this.#parts.startProcess({
      message: (message, connection) => {
        // What a process sent before it ended may arrive after its end was noticed.
        if (slot.process === process) this.#received(slot, message, connection);
        else connection?.close();
      },
      ended: (how) => this.#ended(slot, how),
    });
    slot.process = process;
    slot.problem = null;
    // The start command is the first that a worker hears.
    slot.send({ kind: "start", start: this.#startOf(slot) });
    this.#hub.attach(slot.id, (packet, taken) => process.send(packet, taken));
    const startMs = this.#parts.startMs(this.#config);
    slot.cancelTimer = this.#parts.runtime.after(startMs, () => {
      slot.problem = `it did not start within ${startMs / 1_000} s`;
      process.kill();
    });
  }

  #startOf({ id }: Slot) {
    const { count, version } = this.#parts;
    const config = this.#config;
    const startedWallMs = this.#startedWallMs;
    return { id, count, config, version, serviceId: this.serviceId, startedWallMs };
  }

  #received(slot: Slot, message: WorkerMessage, connection: RawConnection | null): void {
    slot.watch?.heard();
    switch (message.kind) {
      case "hint":
      case "question":
      case "answer":
      case "workers":
        return void this.#hub.receive(message);
      case "connection":
        if (connection !== null) this.#offers.pass(connection, slot.id, message.to);
        return;
      default:
        return this.#reported(slot, message);
    }
  }

  #reported(slot: Slot, report: Report): void {
    switch (report.kind) {
      case "ready":
        slot.cancelTimer();
        slot.servingSinceMs = this.#parts.runtime.now();
        if (!this.#isEnding) this.#watch(slot);
        this.#ports = report.ports;
        this.#announce();
        return this.#tried(slot);
      case "failed":
        slot.problem = report.problem;
        return;
      case "reloaded":
        return this.#reloads.get(report.id)?.(slot.id, report.problem);
      case "accepted":
        return this.#offers.accepted(slot.id, report.offer);
    }
  }

  /** Ends the worker if it stops to answer; meanwhile it counts as not serving. */
  #watch(slot: Slot): void {
    const { runtime, log } = this.#parts;
    const { id: worker } = slot;
    const hungMs = this.#parts.hungMs(this.#config);
    slot.watch = new ResponseWatch(runtime, hungMs, {
      ping: () => slot.send({ kind: "ping" }),
      fellSilent: () => {
        log.error({ worker }, "a worker does not answer: the others serve without it");
        this.#announce();
        this.#offers.withdraw(worker);
      },
      answersAgain: () => {
        log.warn({ worker }, "a worker answers again");
        this.#announce();
      },
      hung: () => {
        log.error({ worker, silent_s: hungMs / 1_000 }, "a worker that does not answer is ended");
        slot.process?.kill();
      },
    });
  }

  #ended(slot: Slot, how: string): void {
    const { runtime } = this.#parts;
    slot.cancelTimer();
    this.#hub.detach(slot.id);
    slot.process = null;
    slot.watch?.stop();
    slot.watch = null;
    this.#parts.onWorkerEnd(slot.id);
    const servedMs = slot.servingSinceMs === null ? 0 : runtime.now() - slot.servingSinceMs;
    slot.servingSinceMs = null;
    this.#announce();
    this.#offers.withdraw(slot.id);
    for (const reloaded of [...this.#reloads.values()]) reloaded(slot.id, null);
    if (this.#isEnding) return this.#checkAllEnded();
    slot.deaths = afterDeath(slot.deaths, servedMs);
    slot.problem ??= `a worker ended before it served (${how})`;
    if (slot.isTried) this.#startAgain(slot, how, servedMs > 0);
    else this.#tried(slot);
  }

  #startAgain(slot: Slot, how: string, hasServed: boolean): void {
    const { runtime, log } = this.#parts;
    const waitMs = delayMs(slot.deaths);
    const facts = { worker: slot.id, ended: how, restart_in_ms: waitMs };
    if (hasServed) log.error(facts, "a worker died: another takes its place");
    else log.error({ ...facts, problem: slot.problem }, "a worker could not be started");
    slot.cancelTimer = runtime.after(waitMs, () => this.#start(slot));
  }

  /** Notes the first outcome of a worker; the last of them settles the start of the service. */
  #tried(slot: Slot): void {
    if (slot.isTried) return;
    slot.isTried = true;
    if (!this.#slots.every(({ isTried }) => isTried)) return;
    const dead = this.#slots.filter(({ process }) => process === null);
    if (this.#ports !== null) {
      this.#settleStart({ ok: true, ports: this.#ports });
      for (const each of dead) this.#startAgain(each, "at its start", false);
      return;
    }
    this.#isEnding = true;
    const problem = dead.find((other) => other.problem !== null)?.problem ?? "";
    this.#settleStart({ ok: false, problem });
  }

  #announce(): void {
    const silent = this.#slots.filter(({ watch }) => watch?.isSilent === true);
    this.#hub.setServing(
      this.#serving().map(({ id }) => id),
      silent.map(({ id }) => id),
    );
  }

  /** Those that serve and answer. */
  #serving(): readonly Slot[] {
    return this.#slots.filter(
      ({ servingSinceMs, watch }) => servingSinceMs !== null && watch?.isSilent !== true,
    );
  }

  #checkAllEnded(): void {
    if (this.#slots.every(({ process }) => process === null)) this.#onAllEnded();
  }
}
