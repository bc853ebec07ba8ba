// What lies past the bounds of continuity: outages that are too long, chains that move on too far,
// pinned providers that stay away. Each ends in a close with 1011 for those it concerns, and for
// nobody else.
import { until } from "../fakes/service-fixture.ts";
import type { Caller } from "./caller.ts";
import type { LiveChain } from "./chain.ts";
import { startSite } from "./site.ts";

/** One case, and what was wrong with it; null = nothing. */
export interface BoundsCase {
  readonly name: string;
  readonly wrong: string | null;
}

const PATIENCE_MS = 15_000;
const SHORT_MS = 1_000;
const NEAR_BLOCKS = 5;
const BLOCK_EVERY_MS = 75;
const LASTING = {
  new_heads_timeout_ms: 20_000,
  max_backfill_blocks: 100,
  backfill_timeout_ms: 60_000,
};
const PROFILES = {
  lasting: { subscriptions: LASTING },
  late: { subscriptions: { ...LASTING, backfill_timeout_ms: SHORT_MS } },
  far: { subscriptions: { ...LASTING, max_backfill_blocks: NEAR_BLOCKS } },
};

/** Tries every case; what was started for it has ended when it resolves. */
export async function tryBounds(
  chain: LiveChain,
  random: () => number,
): Promise<readonly BoundsCase[]> {
  const site = await startSite(chain, { postsPerNode: 1, socketsOnly: true, profiles: PROFILES });
  const callers: Caller[] = [];
  const listen = async (
    path: string,
    ...kinds: readonly (readonly unknown[])[]
  ): Promise<Caller> => {
    const caller = await site.open(path);
    callers.push(caller);
    for (const params of kinds) await caller.subscribe(params, () => {});
    return caller;
  };
  try {
    await until(
      "a service that is ready",
      async () => (await fetch(`${site.service.url}/api/ready`)).ok,
    );
    const [first] = site.posts;
    if (first === undefined) throw new Error("no provider");
    chain.live({ everyMs: BLOCK_EVERY_MS, random });
    const free = await listen("/rpc/profile/lasting/local", ["newHeads"], ["logs", {}]);
    const pinned = await listen(`/rpc/profile/late/provider/${first.id}/local`, ["newHeads"]);
    first.admission.break("reset");
    const cases = [await ends("a pinned provider that stays away", [pinned])];
    first.admission.mend();

    const late = await listen("/rpc/profile/late/local", ["newHeads"]);
    const lateLogs = await listen("/rpc/profile/late/local", ["logs", {}]);
    const latePending = await listen("/rpc/profile/late/local", ["newPendingTransactions"]);
    const far = await listen("/rpc/profile/far/local", ["newHeads"]);
    const farLogs = await listen("/rpc/profile/far/local", ["logs", {}]);
    const idle = await listen("/rpc/profile/late/local");
    for (const { admission } of site.posts) admission.break("reset");
    cases.push(await ends("an outage longer than the bound", [late, lateLogs, latePending]));
    cases.push(lives("those who may wait longer", [far, farLogs, free]));
    await chainMovesOn(chain, 2 * NEAR_BLOCKS);
    for (const { admission } of site.posts) admission.mend();
    cases.push(await ends("a chain that moved on further than the bound", [far, farLogs]));
    cases.push(lives("a socket without subscriptions, and one with wider bounds", [idle, free]));
    return cases;
  } finally {
    for (const caller of callers) caller.close();
    await site.close();
  }
}

/** All of these are closed with 1011. */
async function ends(name: string, callers: readonly Caller[]): Promise<BoundsCase> {
  const codes = await Promise.race([
    Promise.all(callers.map((it) => it.closed)),
    new Promise<null>((resolve) => setTimeout(resolve, PATIENCE_MS, null).unref()),
  ]);
  if (codes === null)
    return {
      name,
      wrong:
        `${callers.filter((it) => it.closedWith() === null).length} of ${callers.length} sockets ` +
        "were not closed",
    };
  return { name, wrong: codes.every((it) => it === 1011) ? null : `closed with ${codes.join()}` };
}

/** None of these is closed. */
function lives(name: string, callers: readonly Caller[]): BoundsCase {
  const closed = callers.map((it) => it.closedWith()).filter((it) => it !== null);
  return { name, wrong: closed.length === 0 ? null : `closed with ${closed.join()}` };
}

async function chainMovesOn(chain: LiveChain, blocks: number): Promise<void> {
  const from = Number(await chain.ask("eth_blockNumber"));
  await until(
    "a chain that moves on",
    async () => Number(await chain.ask("eth_blockNumber")) >= from + blocks,
    PATIENCE_MS,
  );
}
