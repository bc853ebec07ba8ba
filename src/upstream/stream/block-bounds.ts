// A subscriber to logs who wants those of some blocks only. The stream below has no bounds, so that
// equal filters share it.
import { readLog } from "../../core/stream/chain-event.ts";
import { type BlockBounds, isWithin } from "../../core/stream/subscription.ts";
import type { Subscriber } from "./subscriber.ts";

/** The same subscriber, told of the logs of blocks within the bounds only. */
export function withinBounds(bounds: BlockBounds, subscriber: Subscriber): Subscriber {
  const isWanted = (raw: Buffer): boolean => {
    const log = readLog(raw);
    return log !== null && isWithin(bounds, log.blockNumber);
  };
  return {
    started: (route) => subscriber.started(route),
    refused: (outcome, route) => subscriber.refused(outcome, route),
    ended: (reason) => subscriber.ended(reason),
    events(results) {
      const wanted = results.filter(isWanted);
      if (wanted.length > 0) subscriber.events(wanted);
    },
  };
}
