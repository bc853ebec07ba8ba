// Tells every worker of the service of changes of keys, accounts and Custom profiles. The worker
// that wrote a change waits until all others have taken it, at most a second; a slower worker is
// told again until it has.
import type { Logger } from "pino";
import type { Bus, QuestionTopic, WorkerId } from "../../core/workers/bus.ts";
import type { Runtime } from "../../runtime.ts";

/** What has changed. */
export type HostedChange =
  | { readonly kind: "key"; readonly id: string }
  | { readonly kind: "account"; readonly id: string }
  | { readonly kind: "profile"; readonly accountId: string; readonly slug: string };

const CHANGE: QuestionTopic<HostedChange, true> = { name: "hosted change" };

const ANSWER_MS = 1_000;
const MAX_TRIES = 60;

/** What changes are told with. */
export interface BroadcastParts {
  /** Null = this process is the whole service. */
  readonly bus: Bus | null;
  readonly runtime: Pick<Runtime, "after">;
  readonly log: Pick<Logger, "error">;
  /** Takes a change in this process. */
  readonly apply: (change: HostedChange) => Promise<void>;
}

/** Tells of changes: here, and in every other worker. */
export function createChangeBroadcast({
  bus,
  runtime,
  log,
  apply,
}: BroadcastParts): (change: HostedChange) => Promise<void> {
  if (bus === null) return apply;
  bus.serve(CHANGE, async (change) => {
    await apply(change);
    return true as const;
  });
  // Reaches workers as well that begin to serve at this moment and are not known here yet.
  bus.subscribe(CHANGE, (change) => void apply(change));

  async function tellOne(to: WorkerId, change: HostedChange, tries: number): Promise<void> {
    const asked = { topic: CHANGE, message: change, timeoutMs: ANSWER_MS };
    const reply = await bus?.request(to, asked);
    // A worker that is gone knows nothing any more, and its successor nothing yet.
    if (reply === undefined || reply.ok || reply.reason === "gone") return;
    if (tries >= MAX_TRIES)
      return log.error({ worker: to, kind: change.kind }, "a worker did not take a change");
    runtime.after(ANSWER_MS, () => void tellOne(to, change, tries + 1));
  }

  return async (change) => {
    bus.publish(CHANGE, change);
    const others = bus.workers().filter((id) => id !== bus.self);
    await Promise.all([apply(change), ...others.map((id) => tellOne(id, change, 1))]);
  };
}
