// Objects of the supervisor whose methods its workers call over the bus. Arguments and results are
// copied; an error arrives with its message and the codes that callers tell failures apart by.
import { type Bus, type QuestionTopic, SUPERVISOR, type WorkerId } from "../../core/workers/bus.ts";
import { errorFrom, type StatementError, statementErrorOf } from "../store/statement.ts";

/** An object that workers call; each of its methods returns a promise. */
export interface RemoteObject<T> {
  /** Unique in the service. */
  readonly name: string;
  readonly methods: readonly (keyof T & string)[];
  /** A call that has no answer by then fails. */
  readonly timeoutMs: number;
}

interface RemoteCall {
  readonly method: string;
  readonly args: readonly unknown[];
}

type CallResult =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly error: StatementError };

/** Runs the calls of workers; `objectOf` returns the object as one of them has it. */
export function serveCalls<T extends object>(
  bus: Bus,
  { name }: RemoteObject<T>,
  objectOf: (worker: WorkerId) => T,
): void {
  bus.serve(topicOf(name), async ({ method, args }, from): Promise<CallResult> => {
    try {
      const object = objectOf(from);
      const run: unknown = Reflect.get(object, method);
      if (typeof run !== "function") throw new Error(`bug: ${name} has no method ${method}`);
      const value: unknown = await Reflect.apply(run, object, args);
      return { ok: true, value };
    } catch (error) {
      return { ok: false, error: statementErrorOf(error) };
    }
  });
}

/** The object of the supervisor. A call that is not answered fails like one to a silent store. */
export function callsOver<T extends object>(
  bus: Bus,
  { name, methods, timeoutMs }: RemoteObject<T>,
): T {
  const topic = topicOf(name);
  async function call(method: string, args: readonly unknown[]): Promise<unknown> {
    const reply = await bus.request(SUPERVISOR, { topic, message: { method, args }, timeoutMs });
    if (!reply.ok)
      throw Object.assign(new Error(`${name} cannot be asked: ${reply.reason}`), {
        code: "ETIMEDOUT",
      });
    if (!reply.value.ok) throw errorFrom(reply.value.error);
    return reply.value.value;
  }
  const entries = methods.map((method) => [
    method,
    (...args: readonly unknown[]) => call(method, args),
  ]);
  // Both ends are of one build: the name stands for the type.
  return Object.fromEntries(entries) as T;
}

function topicOf(name: string): QuestionTopic<RemoteCall, CallResult> {
  return { name: `calls of ${name}` };
}
