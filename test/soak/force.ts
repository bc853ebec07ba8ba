// Providers are made to fail while they serve, one way or another, and everything they served is
// waited for. Judges no event.
import { until } from "../fakes/service-fixture.ts";
import type { ActFixture } from "./act-fixture.ts";
import type { Audience } from "./audience.ts";
import { between, pick } from "./chance.ts";
import type { Force } from "./figures.ts";
import { BREAKS, type Break } from "./gate.ts";
import type { Post } from "./site.ts";

const RECOVERY_MS = 60_000;
/**
 * Failures that HTTP shares: few, since each opens a circuit for half a minute, and the steady
 * calls are to find one that is closed.
 */
const HTTP_TOO_SHARE = 0.08;
const SUDDEN: readonly Break[] = ["reset", "closed", "torn"];
/**
 * Forces the provider of some subscription to fail and waits until everything it served goes on
 * elsewhere.
 */
export async function failOver(fixture: ActFixture): Promise<void> {
  const { audience, plan, figures } = fixture;
  const force = pick(
    plan.random,
    plan.socketsOnly ? FORCES.filter((it) => it !== "blackout") : FORCES,
  );
  const victim = await serving(fixture);
  const silence = longestSilence(audience);
  if (force === "blackout") await blackOut(fixture);
  else await breakOne(fixture, victim, force);
  await allLive(fixture);
  await headsAfter(audience, 2);
  figures.silencesMs.push(silence.stop());
  figures.failovers[force]++;
}

const FORCES: readonly Force[] = [...SUDDEN, ...SUDDEN, ...SUDDEN, "frozen", "cascade", "blackout"];

async function breakOne(
  fixture: ActFixture,
  victim: Post,
  force: Exclude<Force, "blackout">,
): Promise<void> {
  const { plan } = fixture;
  const { random } = plan;
  const lost = servedBy(victim);
  const how = force === "cascade" ? pick(random, BREAKS) : force;
  victim.admission.break(
    how,
    plan.socketsOnly || random() < HTTP_TOO_SHARE ? "everything" : "sockets",
  );
  const heir = await successor(fixture, lost, victim);
  if (force === "cascade") {
    heir.admission.break(pick(random, SUDDEN), "sockets");
    await successor(fixture, lost, heir);
    mendLater(heir, between(random, 0, 1_200));
  }
  mendLater(victim, between(random, 0, 1_200));
}

/**
 * Every socket fails for a while, which is less than the bounds allow. HTTP goes on: its circuits
 * are no business of this test.
 */
async function blackOut({ site, plan }: ActFixture): Promise<void> {
  const outageMs = between(plan.random, 200, 1_000);
  for (const { admission } of site.posts) admission.break(pick(plan.random, SUDDEN), "sockets");
  await new Promise((resolve) => setTimeout(resolve, outageMs));
  for (const { admission } of site.posts) admission.mend();
  await until(
    "a provider after a blackout",
    () => site.posts.some((it) => servedBy(it).length > 0),
    RECOVERY_MS,
  );
}

/** Loses or delays notifications of a provider that serves; it stays in service. */
export async function disturb(fixture: ActFixture): Promise<void> {
  const { plan, audience, figures } = fixture;
  const { admission } = await serving(fixture);
  const before = admission.lost();
  admission.disturb(pick(plan.random, ["lossy", "late"]));
  await new Promise((resolve) => setTimeout(resolve, between(plan.random, 50, 400)));
  admission.disturb(null);
  await headsAfter(audience, 2);
  figures.disturbances++;
  figures.lostNotifications += admission.lost() - before;
}

/**
 * Subscriptions to logs through a gate: each is that of one stream. Heads may be listened to by
 * many, and who serves only pending transactions may stop without being missed for long.
 */
function servedBy({ admission }: Post): readonly string[] {
  return admission.subscribed().filter((it) => it.startsWith('["logs"'));
}

/** A whole provider that serves a subscription which is not pinned. */
function serving({ site, plan }: ActFixture): Promise<Post> {
  return until(
    "a provider that serves",
    () => {
      const found = site.posts.filter((it) => it.admission.whole() && servedBy(it).length > 0);
      return found.length > 0 && pick(plan.random, found);
    },
    RECOVERY_MS,
  );
}

/**
 * Waits until all of `lost` is served through whole gates; resolves with the provider of one of
 * them.
 */
function successor({ site }: ActFixture, lost: readonly string[], victim: Post): Promise<Post> {
  return until(
    `successors of ${victim.id} for ${lost.join(" ")}`,
    () => {
      const others = site.posts.filter((it) => it.admission.whole());
      const served = new Set(others.flatMap(servedBy));
      return (
        lost.every((it) => served.has(it)) &&
        (others.find((it) => servedBy(it).some((params) => lost.includes(params))) ?? null)
      );
    },
    RECOVERY_MS,
  );
}

/** Resolves when the service says that no subscription is between providers. */
function allLive({ site, audience }: ActFixture): Promise<unknown> {
  return until(
    "subscriptions that are all live",
    async () => {
      const lost = audience.callers.find((it) => it.closedWith() !== null);
      if (lost !== undefined) throw new Error(`a socket was closed: ${lost.closedWith()}`);
      return (await site.subscriptions()).streams.every((it) => it.state === "live");
    },
    RECOVERY_MS,
  );
}

function mendLater({ admission }: Post, afterMs: number): void {
  setTimeout(() => admission.mend(), afterMs).unref();
}

/** Resolves when the first listener has been told of so many more heads. */
export function headsAfter(audience: Audience, count: number): Promise<unknown> {
  const [ledger] = audience.heads;
  const from = ledger?.delivered ?? 0;
  return until(
    `${count} more heads than ${from}`,
    () => (ledger?.delivered ?? 0) >= from + count,
    RECOVERY_MS,
  );
}

/** Measures the longest time without a head from now on. */
function longestSilence(audience: Audience): { readonly stop: () => number } {
  let lastAt = performance.now();
  let longestMs = 0;
  const look = (): void => {
    longestMs = Math.max(longestMs, performance.now() - lastAt);
    lastAt = performance.now();
  };
  audience.onHead = look;
  return {
    stop() {
      look();
      audience.onHead = null;
      return longestMs;
    },
  };
}
