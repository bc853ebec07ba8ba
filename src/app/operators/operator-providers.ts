// What operators do with providers, over the records of the console: cordons that hold at every
// worker and node, waits that end, tests and comparisons.
import { isAskedFor } from "../../core/provider/method-scope.ts";
import { type Provider, type Transport, transportsOf } from "../../core/provider/profile.ts";
import {
  type OperatorCordon,
  type OperatorRecords,
  PLACES_TO_COME,
  type ProviderRef,
} from "../../hosted/operator/stored-records.ts";
import type { Tracker } from "../../upstream/health/tracker.ts";
import { type QueryResult, queryProvider } from "../../upstream/provider-check.ts";
import type {
  CordonTable,
  NamedCordon,
  ProfileRegistry,
} from "../../upstream/registry/profile-registry.ts";
import { type ProviderCallParts, readQuantity } from "../../upstream/rpc-call.ts";
import type { Subscriptions } from "../../upstream/stream/subscriptions.ts";
import { reloadDetail } from "../../web/api/action-log.ts";
import type {
  ComparedAnswer,
  Comparison,
  OperatorProviders,
  RecordAction,
  Requester,
} from "../../web/api/parts.ts";
import type { OperatorChange, OperatorChanges } from "./operator-changes.ts";
import { NOT_READ, type ServiceReload } from "./reload-service.ts";

export interface OperatorProvidersParts extends ProviderCallParts {
  readonly registry: ProfileRegistry;
  readonly cordons: CordonTable;
  readonly records: OperatorRecords;
  readonly subscriptions: Pick<Subscriptions, "rebind">;
  readonly onError: (error: unknown) => void;
  readonly changes: OperatorChanges;
  readonly recordAction: RecordAction;
  readonly reload: ServiceReload;
}

/** The same, which follows what operators do elsewhere. */
export interface OpenOperatorProviders extends OperatorProviders {
  /** Does what an operator did at another process. */
  followed(change: Exclude<OperatorChange, { readonly kind: "purge" }>): Promise<void>;
  close(): void;
}

/** A cordon as the table of cordons has it: of a place, or of all places to come. */
function inTable({ profile, chain, ...cordon }: OperatorCordon): NamedCordon {
  return { ...cordon, place: profile === PLACES_TO_COME ? null : `${profile} ${chain}` };
}

function holds({ untilMs }: OperatorCordon, nowMs: number): boolean {
  return untilMs === null || untilMs > nowMs;
}

/** The clock may be set: ends are compared with it at least so often. */
const END_CHECK_MS = 60_000;

/** The cordons as stored; each holds until its end, which every process judges by its clock. */
class HeldCordons {
  readonly #parts: OperatorProvidersParts;
  #stored: readonly OperatorCordon[] = [];
  #cancel = (): void => {};

  constructor(parts: OperatorProvidersParts) {
    this.#parts = parts;
  }

  replace(stored: readonly OperatorCordon[]): void {
    this.#stored = stored;
    this.#apply();
  }

  /** What holds stays in effect; nothing is waited for. */
  close(): void {
    this.#cancel();
  }

  #apply(): void {
    const { registry, cordons, subscriptions, runtime } = this.#parts;
    const nowMs = runtime.wallMs();
    this.#cancel();
    const held = this.#stored.filter((cordon) => holds(cordon, nowMs));
    if (cordons.replace(held.map(inTable), registry)) subscriptions.rebind(registry);
    const ends = held.flatMap(({ untilMs }) => untilMs ?? []);
    if (ends.length === 0) return;
    const waitMs = Math.min(END_CHECK_MS, Math.min(...ends) - nowMs);
    this.#cancel = runtime.after(waitMs, () => this.#apply());
  }
}

/** Opens it, with the cordons that hold already in effect. */
export async function openOperatorProviders(
  parts: OperatorProvidersParts,
): Promise<OpenOperatorProviders> {
  const { registry, records, changes, runtime } = parts;
  const held = new HeldCordons(parts);
  let [begun, applied] = [0, 0];
  // Readings overlap: one that began before a cordon must not take it back.
  const refresh = async (): Promise<void> => {
    const turn = ++begun;
    const found = await records.cordons();
    if (turn < applied) return;
    applied = turn;
    held.replace(found);
  };
  const changed = async (): Promise<void> => {
    await Promise.all([refresh(), changes.announce()]);
  };
  await refresh();
  const followReload = createReloadFollower(parts);
  return {
    async cordons() {
      const nowMs = runtime.wallMs();
      return (await records.cordons()).filter((cordon) => holds(cordon, nowMs));
    },
    placesOf: (provider) => placesOf(registry, provider),
    async cordon(...cordons) {
      if (cordons.length === 0) return "unknown";
      if (!cordons.every((cordon) => isPlace(registry, cordon))) return "unknown";
      if (!(await records.cordon(...cordons))) return "full";
      await changed();
      return "done";
    },
    async uncordon(...refs) {
      await records.uncordon(...refs);
      await changed();
    },
    endWaits(ref) {
      const ended = endWaits(registry, ref);
      if (ended === null) return null;
      void changes.record({ kind: "waits_ended", provider: ref });
      return ended;
    },
    test: (ref) => test(parts, ref),
    compare: (comparison) => compare(parts, comparison),
    reload: (by) => reload(parts, by),
    close: () => held.close(),
    async followed(change) {
      switch (change.kind) {
        case "cordons":
          return refresh();
        case "waits_ended":
          return void endWaits(registry, change.provider);
        case "reload":
          return followReload();
      }
    },
  };
}

async function reload(
  { changes, reload: reloadHere, onError }: OperatorProvidersParts,
  by: Requester,
): ReturnType<OperatorProviders["reload"]> {
  const outcome = (await reloadHere(null)) ?? NOT_READ;
  const failed = (error: unknown): boolean => {
    onError(error);
    return false;
  };
  const others_asked = outcome.problem === null && (await changes.requestReload(by).catch(failed));
  return { ...outcome, node: changes.node, others_asked };
}

/**
 * The reload that other nodes were asked for last, whether or not this one heard of it: once at
 * each node, with a line of its own, since nodes may have other files.
 */
function createReloadFollower(parts: OperatorProvidersParts): () => Promise<void> {
  const { changes, recordAction, reload: reloadAsked } = parts;
  return async () => {
    const asked = await changes.reloadOfOthers();
    const outcome = asked === null ? null : await reloadAsked(asked);
    if (asked === null || outcome === null) return;
    const { actor, address, node } = asked;
    await recordAction({
      actor,
      address,
      action: "reloadConfiguration",
      target: null,
      detail: `asked at ${node}; ${reloadDetail(outcome)}`,
      outcome: outcome.problem === null ? "done" : "refused",
    });
  };
}

/** A provider that is served, with its tracker. */
interface Served {
  readonly tracker: Tracker;
  readonly provider: Provider;
}

function servedBy(registry: ProfileRegistry, ref: ProviderRef): Served | null {
  const tracker = registry.served(ref.profile)?.trackers.get(ref.chain);
  const provider = tracker?.set.providers.find(({ id }) => id === ref.provider);
  return tracker === undefined || provider === undefined ? null : { tracker, provider };
}

/** Where a provider stands, and the places to come; nothing where it stands nowhere. */
function placesOf(registry: ProfileRegistry, provider: string): readonly ProviderRef[] {
  const places = registry.profiles.flatMap(({ profile, trackers }) =>
    Array.from(trackers.keys(), (chain) => ({ profile: profile.slug, chain, provider })).filter(
      (ref) => isPlace(registry, ref),
    ),
  );
  const toCome = { profile: PLACES_TO_COME, chain: PLACES_TO_COME, provider };
  return places.length === 0 ? [] : [...places, toCome];
}

function isPlace(registry: ProfileRegistry, ref: ProviderRef): boolean {
  return ref.profile === PLACES_TO_COME || servedBy(registry, ref) !== null;
}

function endWaits(
  registry: ProfileRegistry,
  ref: ProviderRef,
): ReturnType<OperatorProviders["endWaits"]> {
  const served = servedBy(registry, ref);
  if (served === null) return null;
  const { tracker, provider } = served;
  const transports = transportsOf(provider);
  const before = transports.map((transport) => tracker.health(provider, transport).breaker);
  tracker.endWaits(provider);
  return transports.map((transport, n) => ({
    transport,
    was: before[n] ?? "closed",
    now: tracker.health(provider, transport).breaker,
  }));
}

/** Asks a provider for chain id and height on each transport, which also counts as a probe. */
async function test(
  parts: OperatorProvidersParts,
  ref: ProviderRef,
): ReturnType<OperatorProviders["test"]> {
  const served = servedBy(parts.registry, ref);
  if (served === null) return null;
  return Promise.all(
    transportsOf(served.provider).map((transport) => testOn(parts, served, transport)),
  );
}

type ProviderTest = NonNullable<Awaited<ReturnType<OperatorProviders["test"]>>>[number];

async function testOn(
  parts: OperatorProvidersParts,
  { tracker, provider }: Served,
  transport: Transport,
): Promise<ProviderTest> {
  const channel = { provider, transport, params: "[]" };
  const chain = await queryProvider(parts, { ...channel, method: "eth_chainId" });
  const chainId = quantityOf(chain);
  if (chain.kind === "error") return testOf(transport, chain, { chainId, height: null });
  if (!isAskedFor(provider, "eth_blockNumber", true))
    return { ...testOf(transport, chain, { chainId, height: null }), ok: chainId !== null };
  const head = await queryProvider(parts, { ...channel, method: "eth_blockNumber" });
  const height = quantityOf(head);
  const { latencyMs } = head;
  if (chainId !== null && height !== null)
    tracker.recordProbe({
      provider,
      transport,
      latencyMs,
      result: { kind: "ok", chainId, height },
    });
  return testOf(transport, head, { chainId, height });
}

function testOf(
  transport: Transport,
  last: QueryResult,
  { chainId, height }: { readonly chainId: number | null; readonly height: number | null },
): ProviderTest {
  return {
    transport,
    ok: chainId !== null && height !== null,
    latency_ms: last.latencyMs,
    chain_id: chainId,
    block_height: height,
    error: last.kind === "error" ? last.error : null,
  };
}

function quantityOf(answer: QueryResult): number | null {
  return answer.kind === "error" ? null : readQuantity(answer.result);
}

/** Providers of one comparison that are asked at the same time. */
const CONCURRENCY = 16;
/** Providers that were not asked by then are not asked any more. */
const COMPARE_MS = 20_000;

async function compare(
  parts: OperatorProvidersParts,
  comparison: Comparison,
): Promise<readonly ComparedAnswer[] | null> {
  const tracker = parts.registry.served(comparison.profile)?.trackers.get(comparison.chain);
  if (tracker === undefined) return null;
  const { providers } = tracker.set;
  const answers = new Map<string, ComparedAnswer>();
  const next = providers.values();
  const untilMs = parts.runtime.now() + COMPARE_MS;
  const work = async (): Promise<void> => {
    for (const provider of next) {
      const isLate = parts.runtime.now() >= untilMs;
      const served = { tracker, provider };
      answers.set(provider.id, await comparedAnswer(parts, served, { ...comparison, isLate }));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  return providers.flatMap(({ id }) => answers.get(id) ?? []);
}

async function comparedAnswer(
  parts: OperatorProvidersParts,
  { tracker, provider }: Served,
  { method, params, isLate }: Comparison & { readonly isLate: boolean },
): Promise<ComparedAnswer> {
  const transport = provider.url === null ? "ws" : "http";
  const reason = isLate ? "time" : skipReason({ tracker, provider }, method);
  const answer =
    reason === null
      ? await queryProvider(parts, { provider, transport, method, params })
      : ({ kind: "skipped", reason } as const);
  return { provider: provider.id, alias: provider.alias, transport, answer };
}

/** Why a provider is not asked; null = it is. */
function skipReason({ tracker, provider }: Served, methodName: string): string | null {
  if (tracker.cordonOf(provider) !== null) return "cordoned_by_operator";
  if (!isAskedFor(provider, methodName, true)) return "out_of_scope";
  return tracker.hasRoom(provider, { methodName }) ? null : "limit";
}
