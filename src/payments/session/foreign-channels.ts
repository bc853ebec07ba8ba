// Channels of an earlier configuration: found among the due ones, logged once and left alone. Calls
// no chain and signs nothing.
import type { SessionChannel } from "./channel-record.ts";
import { channelIdOf } from "./descriptor.ts";
import type { SessionRail } from "./session-rail.ts";
import { isOurs } from "./terms.ts";

const MAX_LOGGED = 10_000;
const PUT_OFF_MS = 600_000;

/**
 * Postpones channels to another payee, wallet, token or contract than the configured one, for which
 * our wallet cannot sign. `logged` = ids that were logged before. Returns the other channels.
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
