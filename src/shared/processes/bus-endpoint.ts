// One end of the bus: delivers hints to subscribers, sends requests with deadlines, and reports
// which workers serve. Knows no process: packets leave through a function and arrive by a call.
import type {
  Bus,
  BusReply,
  Question,
  QuestionTopic,
  Topic,
  WorkerId,
} from "../../core/workers/bus.ts";
import { SUPERVISOR } from "../../core/workers/bus.ts";
import { ownerAmong } from "../../core/workers/rendezvous.ts";
import type { Runtime } from "../../runtime.ts";
import type { Packet } from "./packet.ts";

export interface BusEndpointParts {
  readonly self: WorkerId;
  readonly runtime: Pick<Runtime, "after">;
  /** False = the queue is full. */
  readonly send: (packet: Packet) => boolean;
  readonly workers: readonly WorkerId[];
  /** There is no supervisor: what it would be asked is answered here. */
  readonly isWhole?: true;
  /** Receives exceptions of subscribers and request handlers. */
  readonly onError: (error: unknown) => void;
}

const MAX_OPEN_QUESTIONS = 8_192;

/** The bus of a service with one process: every question is answered by the process itself. */
export function createLocalBus(
  runtime: Pick<Runtime, "after">,
  onError: (error: unknown) => void,
): Bus {
  const [self, send] = ["1", () => true];
  return new BusEndpoint({ self, runtime, workers: [self], isWhole: true, send, onError });
}

type Listener = (body: unknown, from: WorkerId) => void;
type Answerer = (body: unknown, from: WorkerId) => Promise<BusReply<unknown>>;

interface OpenQuestion {
  readonly to: WorkerId;
  readonly settle: (reply: BusReply<unknown>) => void;
}

const REFUSED: BusReply<never> = { ok: false, reason: "refused" };

/** An endpoint, with a way to deliver packets to it. */
export class BusEndpoint implements Bus {
  readonly self: WorkerId;
  readonly #parts: BusEndpointParts;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #answerers = new Map<string, Answerer>();
  readonly #open = new Map<number, OpenQuestion>();
  readonly #onWorkers = new Set<() => void>();
  #workers: readonly WorkerId[];
  #silent: readonly WorkerId[] = [];
  #lastId = 0;

  constructor(parts: BusEndpointParts) {
    this.#parts = parts;
    this.self = parts.self;
    this.#workers = parts.workers;
  }

  workers(): readonly WorkerId[] {
    return this.#workers;
  }

  silent(): readonly WorkerId[] {
    return this.#silent;
  }

  onWorkers(run: () => void): () => void {
    this.#onWorkers.add(run);
    return () => void this.#onWorkers.delete(run);
  }

  ownerOf(key: string): WorkerId {
    return ownerAmong(this.#workers, key) ?? this.self;
  }

  publish<M>({ name }: Topic<M>, body: M): void {
    if (this.#workers.some((id) => id !== this.self))
      this.#parts.send({ kind: "hint", from: this.self, topic: name, body });
  }

  subscribe<M>({ name }: Topic<M>, receive: (message: M, from: WorkerId) => void): () => void {
    // The topic's name stands for its type: both ends are of one build.
    const listener: Listener = (body, from) => receive(body as M, from);
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  async request<M, R>(to: WorkerId, request: Question<M, R>): Promise<BusReply<R>> {
    const isHere = to === this.self || (to === SUPERVISOR && this.#parts.isWhole === true);
    const reply = isHere
      ? await this.#answerHere(request.topic.name, request.message, to)
      : await this.#requestFrom(to, request);
    return reply as BusReply<R>;
  }

  serve<M, R>(
    { name }: QuestionTopic<M, R>,
    answer: (message: M, from: WorkerId) => R | Promise<R>,
  ): () => void {
    if (this.#answerers.has(name)) throw new Error(`bug: two answer questions about ${name}`);
    this.#answerers.set(name, async (body, from) => ({
      ok: true,
      value: await answer(body as M, from),
    }));
    return () => void this.#answerers.delete(name);
  }

  /** Handles a packet that arrived. */
  receive(packet: Packet): void {
    switch (packet.kind) {
      case "hint":
        return this.#hear(packet.topic, packet.body, packet.from);
      case "question":
        return this.#answer(packet);
      case "answer":
        return this.#open.get(packet.id)?.settle(packet.reply);
      case "workers":
        return this.#setWorkers(packet);
    }
  }

  #hear(topic: string, body: unknown, from: WorkerId): void {
    for (const listener of [...(this.#listeners.get(topic) ?? [])]) {
      try {
        listener(body, from);
      } catch (error) {
        this.#parts.onError(error);
      }
    }
  }

  #answer({ id, from, topic, body }: Extract<Packet, { readonly kind: "question" }>): void {
    void this.#answerHere(topic, body, from).then((reply) =>
      this.#parts.send({ kind: "answer", id, from: this.self, to: from, reply }),
    );
  }

  async #answerHere(topic: string, body: unknown, from: WorkerId): Promise<BusReply<unknown>> {
    try {
      return (await this.#answerers.get(topic)?.(body, from)) ?? REFUSED;
    } catch (error) {
      this.#parts.onError(error);
      return REFUSED;
    }
  }

  #requestFrom(
    to: WorkerId,
    { topic: { name: topic }, message: body, timeoutMs }: Question<unknown, unknown>,
  ): Promise<BusReply<unknown>> {
    if (this.#open.size >= MAX_OPEN_QUESTIONS)
      return Promise.resolve({ ok: false, reason: "busy" });
    if (this.#silent.includes(to)) return Promise.resolve({ ok: false, reason: "timeout" });
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      const settle = (reply: BusReply<unknown>): void => {
        cancel();
        this.#open.delete(id);
        resolve(reply);
      };
      const cancel = this.#parts.runtime.after(timeoutMs, () =>
        settle({ ok: false, reason: "timeout" }),
      );
      this.#open.set(id, { to, settle });
      const packet: Packet = { kind: "question", id, from: this.self, to, topic, body };
      if (!this.#parts.send(packet)) settle({ ok: false, reason: "busy" });
    });
  }

  #setWorkers({ ids, silent }: Extract<Packet, { readonly kind: "workers" }>): void {
    this.#workers = ids;
    this.#silent = silent;
    for (const { to, settle } of [...this.#open.values()])
      if (to !== SUPERVISOR && !ids.includes(to))
        settle({ ok: false, reason: silent.includes(to) ? "timeout" : "gone" });
    for (const run of [...this.#onWorkers]) run();
  }
}
