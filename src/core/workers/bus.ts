// The port to the other workers of this service: which of them live, who owns a key, hints to all,
// and questions to one. Never used once per request. Knows neither processes nor sockets.

/** A worker of the service, by its place: "1", "2" and so on. A successor takes the same place. */
export type WorkerId = string;

/** The process that started the workers; it answers questions and serves no traffic. */
export const SUPERVISOR: WorkerId = "supervisor";

/**
 * A kind of message. All processes of a service run one build, so messages are values of its types
 * (copied as by `structuredClone`) and are not parsed where they arrive.
 */
export interface Topic<M> {
  /** Unique in the service. */
  readonly name: string;
  /** Never set: ties the type of the message to the topic. */
  readonly message?: M;
}

/** A kind of question: its message and its answer. */
export interface QuestionTopic<M, R> extends Topic<M> {
  /** Never set, as above. */
  readonly answer?: R;
}

/** A question to one worker. */
export interface Question<M, R> {
  readonly topic: QuestionTopic<M, R>;
  readonly message: M;
  readonly timeoutMs: number;
}

/** What became of a question. */
export type BusReply<R> =
  | { readonly ok: true; readonly value: R }
  /**
   * `timeout`: no answer in time, or the worker is silent; `gone`: the worker is no more; `busy`:
   * too many questions wait; `refused`: it cannot answer.
   */
  | { readonly ok: false; readonly reason: "timeout" | "gone" | "busy" | "refused" };

/** The workers of this service, as one of them sees the others. */
export interface Bus {
  /** This worker, or the supervisor. */
  readonly self: WorkerId;
  /** The workers that serve now, in order. One that is still starting is not among them. */
  workers(): readonly WorkerId[];
  /**
   * Workers that live but do not answer, so they count as not serving. Each either answers again,
   * with all that it holds, or ends.
   */
  silent(): readonly WorkerId[];
  /**
   * Calls back after workers came, went or fell silent: owners may have changed. The result
   * cancels.
   */
  onWorkers(run: () => void): () => void;
  /** The one worker that a key belongs to; all agree once they have heard of the same workers. */
  ownerOf(key: string): WorkerId;
  /** Sends a hint to all other workers. One that does not read loses its oldest hints. */
  publish<M>(topic: Topic<M>, message: M): void;
  /** Hears the hints of others; the result cancels. */
  subscribe<M>(topic: Topic<M>, receive: (message: M, from: WorkerId) => void): () => void;
  /** Asks one worker, also this one. Always resolves, at the latest after `timeoutMs`. */
  request<M, R>(to: WorkerId, request: Question<M, R>): Promise<BusReply<R>>;
  /** Answers questions of a kind; one function a kind. The result cancels. */
  serve<M, R>(
    topic: QuestionTopic<M, R>,
    answer: (message: M, from: WorkerId) => R | Promise<R>,
  ): () => void;
}

/** The time, and the way to wait for it. */
export interface BusClock {
  now(): number;
  after(ms: number, run: () => void): () => void;
}
