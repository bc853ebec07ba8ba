// Channels of an earlier configuration: found among those that are due, told of once and left
// alone. Asks no chain and signs nothing.
import type { SessionChannel } from "./channel-record.ts";
import { channelIdOf } from "./descriptor.ts";
import type { SessionRail } from "./session-rail.ts";
import { isOurs } from "./terms.ts";

const MAX_LOGGED = 10_000;
const PUT_OFF_MS = 600_000;

/**
 * Puts off channels that are to another payee, wallet, token or contract than is configured now:
 * ours would sign for them in vain. `told` = those that the log was told of. Returns the others.
 */
export async function leaveForeign(
  parts: SessionRail,
  logged: Set<string>,
  due: readonly SessionChannel[],
): Promise<readonly SessionChannel[]> {
  const { store, channels, terms, runtime, log } = parts;
  const isMine = ({ id, descriptor }: SessionChannel): boolean =>
    isOurs(terms, descriptor) && channelIdOf(descriptor, terms.escrow, terms.chainId) === id;
  const foreign = due.filter((channel) => !isMine(channel));
  if (foreign.length === 0) return due;
  for (const { id } of foreign) {
    if (logged.has(id) || logged.size >= MAX_LOGGED) continue;
    logged.add(id);
    log.error(
      { channel: id },
      "a channel is to another recipient, wallet, token or contract than is configured: it is " +
        "left alone. Configure those again to settle it",
    );
  }
  await store.transaction(async (tx) => {
    for (const { id } of foreign)
      await channels.write(tx, id, { lookAtMs: runtime.wallMs() + PUT_OFF_MS });
  });
  return due.filter((channel) => !foreign.includes(channel));
}
