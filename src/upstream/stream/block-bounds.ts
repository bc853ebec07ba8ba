// Block bounds of a log subscriber. The stream itself has no bounds, so that equal filters share
// it.
import { readLog } from "../../core/stream/chain-event.ts";
import { type BlockBounds, isWithin } from "../../core/stream/subscription.ts";
import type { Subscriber } from "./subscriber.ts";

/** Wraps a subscriber so that it receives only logs of blocks within the bounds. */
export function withinBounds(bounds: BlockBounds, subscriber: Subscriber): Subscriber {
  const isWanted = (raw: Buffer): boolean => {
    const log = readLog(raw);
    return log !== null && isWithin(bounds, log.blockNumber);
  };
  return {
    started: (route, position) => subscriber.started(route, position),
    refused: (outcome, route) => subscriber.refused(outcome, route),
    ended: (reason) => subscriber.ended(reason),
    unconfirmed(block, why) {
      if (isWithin(bounds, block.number)) subscriber.unconfirmed?.(block, why);
    },
    events(results) {
      const wanted = results.filter(isWanted);
      if (wanted.length > 0) subscriber.events(wanted);
    },
  };
}
