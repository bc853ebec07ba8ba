// Whether this node hears of the changes of others. Without them it is careful at first; at the
// node timeout it stops serving callers with a key.
import type { Logger } from "pino";
import type { Runtime } from "../../runtime.ts";
import type { ChangeFeed } from "./change-feed.ts";

/**
 * `heard` = changes elsewhere are heard of; `silent` = not for some seconds; `cut_off` = not for
 * the node timeout.
 */
export type Contact = "heard" | "silent" | "cut_off";

/** What contact is watched with. */
export interface ContactParts {
  readonly runtime: Runtime;
  readonly feed: Pick<ChangeFeed, "silentMs">;
  readonly nodeTimeoutMs: number;
  readonly log: Pick<Logger, "warn" | "info">;
}

const SILENT_MS = 5_000;
/** Sooner where nodes are taken for dead sooner than usual. */
const SILENT_PART = 1 / 6;
/** Changes are asked for once a second: less than this is no silence. */
const LEAST_SILENT_MS = 2_500;
/** Looks in the time after which a node counts as silent. */
const LOOKS = 10;

/** Contact at this moment: right also in a process that stood still, whose timers come late. */
export function contactNow({
  feed,
  nodeTimeoutMs,
}: Pick<ContactParts, "feed" | "nodeTimeoutMs">): Contact {
  const silentMs = feed.silentMs();
  if (silentMs >= nodeTimeoutMs) return "cut_off";
  return silentMs >= silentAfter(nodeTimeoutMs) ? "silent" : "heard";
}

/** Tells of each change of contact; the returned function ends that. */
export function watchContact(parts: ContactParts, tell: (contact: Contact) => void): () => void {
  const { runtime, nodeTimeoutMs } = parts;
  const lookMs = silentAfter(nodeTimeoutMs) / LOOKS;
  let before: Contact = "heard";
  let cancel = runtime.after(lookMs, look);

  function look(): void {
    cancel = runtime.after(lookMs, look);
    const now = contactNow(parts);
    if (now === before) return;
    before = now;
    report(parts, now);
    tell(now);
  }

  return () => cancel();
}

function silentAfter(nodeTimeoutMs: number): number {
  return Math.min(SILENT_MS, Math.max(LEAST_SILENT_MS, nodeTimeoutMs * SILENT_PART));
}

function report({ log, feed }: ContactParts, contact: Contact): void {
  const silentS = Math.round(feed.silentMs() / 1_000);
  switch (contact) {
    case "heard":
      return log.info("the database answers again: changes of other nodes are heard of");
    case "silent":
      return log.warn(
        { silent_s: silentS },
        "the database does not answer: keys known to be good go on, others get 503",
      );
    case "cut_off":
      return log.warn(
        { silent_s: silentS },
        "the database has not answered for the node timeout: requests with a key get 503",
      );
  }
}
