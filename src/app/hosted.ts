// Builds the hosted half on an open store: credit, admission, payments and API. Starts it, and
// closes it with the store.

import type { Logger } from "pino";
import type { Config } from "../config/config.ts";
import type { HostedConfig } from "../config/hosted.ts";
import type { ManagedSlug } from "../core/billing/access.ts";
import type { Invalidations } from "../core/billing/invalidations.ts";
import { smallestPriceN, usdText } from "../core/billing/price.ts";
import { errorText } from "../core/fields.ts";
import type { MethodTable } from "../core/rpc/method-table.ts";
import {
  type OpenAddressLimit,
  type OpenCreationLimit,
  openAddressLimit,
} from "../core/workers/shared-address-limits.ts";
import { SharedHoldings } from "../core/workers/shared-holdings.ts";
import { Admission } from "../hosted/admission/admission.ts";
import { parseProblems } from "../hosted/audit/audit-results.ts";
import { exportStore } from "../hosted/audit/export.ts";
import { type Credit, openCredit } from "../hosted/credit/credit.ts";
import { CREDIT_BOUNDS, creditOn } from "../hosted/credit/credit-store.ts";
import { KEY_CACHE_LIMITS, KeyCache } from "../hosted/keys/key-cache.ts";
import { keyRow } from "../hosted/keys/key-context.ts";
import { type LegacyFormUsage, openLegacyFormUsage } from "../hosted/legacy-form-usage.ts";
import type { ProfileLoader } from "../hosted/profiles/profile-loader.ts";
import { OWN_CALLS } from "../observe/operator-report.ts";
import { holdsPayments, paymentsOnDemand, sessionsOnDemand } from "../payments/on-demand.ts";
import type { Payments } from "../payments/payments.ts";
import type { RailSettings } from "../payments/rails/rails.ts";
import type { Sessions } from "../payments/session/sessions.ts";
import { type Runtime, within } from "../runtime.ts";
import { localSecret } from "../secrets/sealer.ts";
import { bookedAddressLimits } from "../shared/leases/booked-address-limits.ts";
import { RateShares } from "../shared/leases/rate-shares.ts";
import { repeatJob } from "../shared/nodes/job-claims.ts";
import { startRetention } from "../shared/nodes/retention.ts";
import { callsOver } from "../shared/processes/remote-calls.ts";
import { openStore, type Store } from "../shared/store/store.ts";
import { createApi } from "../web/api/api.ts";
import { type Api, firstServing } from "../web/api/operation-server.ts";
import type { CustomParts } from "../web/api/parts.ts";
import { createAccountPages } from "../web/pages/account/account-pages.ts";
import { CallPaywall } from "../web/payment/call-paywall.ts";
import { PurchasePaywall } from "../web/payment/purchase-paywall.ts";
import type { PaidKey } from "../web/rpc/paid/rpc-paywall.ts";
import { auditBooks, auditForOperator } from "./audit.ts";
import { BENEFICIARIES } from "./beneficiaries.ts";
import { followerOf, type ServiceNode } from "./cluster.ts";
import { type CustomServing, openCustomProfiles } from "./custom-profiles.ts";
import type { OperatorConsole } from "./operators/operator-console.ts";
import { limitsOf, processIdOf, type ServiceParts, workerOf } from "./service-parts.ts";
import { CREDIT, TOKENS } from "./workers/supervisor-objects.ts";

/** The running hosted service. */
export interface Hosting {
  readonly admission: Admission;
  readonly api: Api;
  readonly legacyForms: LegacyFormUsage;
  /** The paywall shared by operations and calls with a key; null = nothing can be bought. */
  readonly paywall: PurchasePaywall | null;
  /** The paywall of pay-per-call; null = not available. */
  readonly callPaywall: CallPaywall | null;
  /** Finds a key, even one that has ended, by the digest of its secret. */
  readonly keyOf: (digest: string) => Promise<PaidKey | null>;
  /** Pay-per-call; null = there are no payment channels. */
  readonly sessions: Sessions | null;
  readonly credit: Pick<Credit, "metered" | "maySpend">;
  /** Loads Custom profiles anew, because the configured chains have changed. */
  chainsChanged(): void;
  /** Writes pending usage, returns unspent credit, and closes the store. */
  close(): Promise<void>;
}

export interface HostingParts extends ServiceNode {
  readonly config: Config;
  readonly settings: HostedConfig;
  readonly runtime: Runtime;
  readonly log: Logger;
  readonly serving: CustomServing;
  readonly console: OperatorConsole;
  /** The method table of the current configuration. */
  readonly methods: () => MethodTable;
  readonly service: ServiceParts;
}

const MANAGED: readonly ManagedSlug[] = ["premium", "public"];
const AUDIT_MS = 3_600_000;
/**
 * How much earlier than an hour after the last audit the next one is due: the timers of several
 * nodes are not in step.
 */
const AUDIT_SLACK_MS = 600_000;
/** Rate limit for look-ups of unknown keys, by address. */
const MISSES = { perSecond: 0.5, burst: 30 };
/** Reads within this time share one write of pending usage. */
const SETTLE_MS = 25;
/** Longest time that a read waits for this write. */
const SETTLE_WAIT_MS = 500;
/** Time limit of each step of closing. */
const CLOSE_MS = 5_000;
/** Time between two requests of a worker for tokens of rate limits. */
const TOKENS_MS = 5;
/** Smallest lease of credit, in compute units. */
const MIN_SLICE_CU = 100;

/** Starts the hosted services on the store. */
export async function openHosting(parts: HostingParts): Promise<Hosting> {
  const { config, settings, runtime, store, cluster, onError } = parts;
  const legacyForms = await legacyFormsOf(parts);
  const custom = await openCustomProfiles(parts);
  const openLimit = limitsOf(parts);
  const shared = sharedLimitsOf(parts);
  const node = cluster?.node.id ?? nodeIdOf(config, runtime, workerOf(parts.service));
  const credit = await creditOf(parts, node);
  const keyCache = new KeyCache({
    store,
    runtime,
    credit,
    misses: openLimit("keys", MISSES),
    limits: KEY_CACHE_LIMITS,
    onError,
  });
  const admission = new Admission({
    runtime,
    settings,
    credit,
    keyCache,
    profiles: custom.loader,
    ...shared,
  });
  const changed = changesOver(parts, { keyCache, loader: custom.loader });
  const payments = await paymentsOf(parts, changed, node);
  const paywall = payments === null ? null : new PurchasePaywall({ payments, runtime, openLimit });
  const sessions = await sessionsOf(parts, credit);
  const customParts = { ...custom.written, changed: changed.profile };
  const api = apiOf(parts, {
    ...{ changes: changed, paywall, credit, custom: customParts, openLimit },
    openCreationLimit: shared.openCreationLimit,
  });
  parts.changes.follow(followerOf({ keyCache, credit, loader: custom.loader }));
  const endJobs = startJobs(parts);

  return {
    admission,
    api,
    legacyForms,
    paywall,
    callPaywall: sessions === null ? null : new CallPaywall(sessions, runtime),
    sessions,
    credit,
    keyOf: (digest) => keyOf(store, digest),
    chainsChanged: () => custom.loader.changedElsewhere(null),
    async close() {
      await endJobs().catch(onError);
      admission.close();
      custom.loader.close();
      shared.sharing?.close();
      await leaveOthers(parts);
      await closeStore(parts, { payments, sessions, credit, legacyForms, store });
    },
  };
}

/** Leaves the cluster and stops following changes. */
async function leaveOthers({ cluster, changes, runtime, onError }: HostingParts): Promise<void> {
  changes.close();
  await within(
    runtime,
    CLOSE_MS,
    "leaving the cluster",
    cluster?.close() ?? Promise.resolve(),
  ).catch(onError);
}

async function legacyFormsOf(parts: HostingParts): Promise<LegacyFormUsage> {
  const policy = parts.settings.legacyForms;
  const legacyForms = await openLegacyFormUsage({ ...parts, policy });
  const forms = [...legacyForms.off];
  if (forms.length > 0) parts.log.info({ forms }, "legacy forms of requests that are not served");
  return legacyForms;
}

function creditOf(parts: HostingParts, node: string): Promise<Credit> {
  const { store, runtime, settings, cluster, changes, service, onError } = parts;
  // Workers leave transactions on an embedded store to the supervisor, which has the file open.
  const isRemote = service.workers > 1 && store.engine === "sqlite";
  return openCredit({
    store,
    runtime,
    onError,
    node: { id: node, region: cluster?.node.region ?? "" },
    replaces: cluster === null ? "any" : cluster.replaces,
    agreedMs: () => cluster?.membership.databaseMs() ?? runtime.wallMs(),
    recalls: !changes.isAlone,
    recorded: () => changes.written(),
    processId: cluster?.processId ?? processIdOf(service),
    transactions: isRemote ? callsOver(service.bus, CREDIT) : creditOn(store),
    settings: {
      flushIntervalMs: settings.flushIntervalMs,
      nodeTimeoutMs: settings.nodeTimeoutMs,
      minSliceN: MIN_SLICE_CU * settings.tariff.nanoPerCu,
      smallestN: smallestPriceN(settings.tariff),
      ...CREDIT_BOUNDS,
    },
  });
}

interface ApiCollaborators {
  readonly openLimit: OpenAddressLimit;
  readonly openCreationLimit: OpenCreationLimit;
  readonly changes: Invalidations;
  readonly paywall: PurchasePaywall | null;
  readonly credit: Credit;
  readonly custom: CustomParts;
}

/** The account pages and the management API. */
function apiOf(
  parts: HostingParts,
  { changes, paywall, credit, custom, ...limits }: ApiCollaborators,
): Api {
  const { config, settings, runtime, serving, console } = parts;
  const { keysPerHour, payments } = settings;
  const common = { ...parts, ...config.server, ...limits, changes, keysPerHour };
  const api = createApi({
    ...common,
    ...console,
    ...instanceParts(config, serving),
    custom,
    paywall,
    audit: () =>
      auditForOperator({
        ...parts,
        rails: payments.rails,
        run: { runner: "operator", node: parts.cluster?.identity.id ?? null },
      }),
    settle: settling(credit, runtime),
    ownCalls: (query) => OWN_CALLS.read(parts.service.bus, query),
  });
  return firstServing([createAccountPages(common), api]);
}

/** The services that write to the store, in the order in which they are closed. */
interface Writers {
  readonly payments: Payments | null;
  readonly sessions: Sessions | null;
  readonly credit: Credit;
  readonly legacyForms: LegacyFormUsage;
  readonly store: Store;
}

/** Writes pending state, so that the next start can continue, and closes the store. */
async function closeStore(
  parts: Pick<HostingParts, "runtime" | "log" | "onError">,
  { payments, sessions, credit, legacyForms, store }: Writers,
): Promise<void> {
  const { runtime, log, onError } = parts;
  const inTime = (what: string, work: Promise<void> = Promise.resolve()): Promise<void> =>
    within(runtime, CLOSE_MS, what, work);
  await inTime("ending purchases", payments?.close()).catch(onError);
  await inTime("ending payment channels", sessions?.close()).catch(onError);
  await inTime("returning credit", credit.close()).catch((error: unknown) => {
    const unwritten = `${usdText(credit.unwrittenN())} USD`;
    log.error(
      { problem: errorText(error), unwritten },
      "the store cannot be written: what was served since the last write is not billed",
    );
  });
  await inTime("writing the use of legacy forms", legacyForms.close()).catch(onError);
  await inTime("closing the store", store.close()).catch(onError);
}

/** What the API shows of the instance: its chains, and the profiles that every account can use. */
function instanceParts({ devnet }: Config, { chains, servedChains }: CustomServing) {
  return { chains, devnet, profiles: () => MANAGED, servedChains };
}

/** Starts the jobs that one node does for all; the returned function ends them. */
function startJobs(parts: HostingParts): () => Promise<void> {
  const audit = { name: "audit", everyMs: AUDIT_MS - AUDIT_SLACK_MS, run: () => auditOnce(parts) };
  const endAudits = repeatJob({ ...parts, everyMs: AUDIT_MS }, audit);
  const endRetention = startRetention(parts);
  return async () => {
    // A running audit is not waited for: it changes nothing but its recorded result.
    void endAudits();
    await within(parts.runtime, CLOSE_MS, "retention", endRetention());
  };
}

async function auditOnce(parts: HostingParts): Promise<void> {
  const run = { runner: "service", node: parts.cluster?.identity.id ?? null } as const;
  const result = await auditBooks({ ...parts, run });
  if (result.state === "balanced") return;
  const differences = parseProblems(result).slice(0, 10);
  parts.log.error({ differences }, "the books do not agree");
}

/**
 * Payments, if rails are configured; null = nothing can be bought. Their libraries are imported
 * here, so that services without payments do not load them.
 */
async function paymentsOf(
  { config, settings: { payments: settings }, runtime, log, store, claims }: HostingParts,
  changes: Invalidations,
  node: string,
): Promise<Payments | null> {
  if (settings.rails.length === 0) return null;
  const open = async (): Promise<Payments> => {
    const { openPayments } = await import("../payments/start.ts");
    const parts = { runtime, log, store, claims, changes, beneficiaries: BENEFICIARIES };
    return openPayments({ ...parts, node, settings, ...challengeSettings(config) });
  };
  return (await opensOnDemand(settings.rails, store)) ? paymentsOnDemand(settings, open) : open();
}

/**
 * Whether payments are opened at their first use: all rails are local, and no payment is stored
 * yet.
 */
async function opensOnDemand(rails: readonly RailSettings[], store: Store): Promise<boolean> {
  return rails.every((rail) => rail.local) && !(await holdsPayments(store));
}

/**
 * Pay-per-call, if a rail supports it; null = not available. Its libraries are imported as those of
 * payments are.
 */
async function sessionsOf(
  { config, settings, runtime, log, store, claims }: HostingParts,
  credit: Credit,
): Promise<Sessions | null> {
  const { rails: all, offerMs, waitMs } = settings.payments;
  const rails = all.filter((rail) => rail.kind === "session");
  if (rails.length === 0) return null;
  const open = async (): Promise<Sessions> => {
    const { openSessions } = await import("../payments/session/open.ts");
    const rateLimitSize = settings.buckets.managed;
    const process = { presence: () => credit.presence(), heartbeatMs: settings.flushIntervalMs };
    const parts = { runtime, log, store, claims, process, ...challengeSettings(config) };
    return openSessions({ ...parts, rails, offerMs, waitMs, rateLimitSize });
  };
  return (await opensOnDemand(rails, store)) ? sessionsOnDemand(open) : open();
}

/** The realm of payment challenges, and the secrets that sign offers. */
function challengeSettings({ server, secret, previousSecret, dataDir }: Config) {
  return {
    realm: server.publicUrl === null ? REALM : new URL(server.publicUrl).host,
    secret: secret ?? localSecret(dataDir),
    previousSecret,
  };
}

/** The realm of payment challenges if `public_url` is not set. */
const REALM = "svc";

async function keyOf(store: Store, digest: string): Promise<PaidKey | null> {
  const row = await keyRow(store, digest);
  return row === undefined ? null : { accountId: row.account_id, keyId: row.key_id };
}

/**
 * Returns a function that writes pending usage before a read. Reads within `SETTLE_MS` share one
 * write, and no read waits longer than `SETTLE_WAIT_MS` for it. False = the account (null = any)
 * had no pending usage.
 */
function settling(
  credit: Credit,
  runtime: Runtime,
): (accountId: string | null) => Promise<boolean> {
  let next: Promise<void> | null = null;
  return async (accountId) => {
    if (!credit.isUnwritten(accountId)) return false;
    next ??= new Promise((resolve) => {
      runtime.after(SETTLE_MS, () => {
        next = null;
        const cancel = runtime.after(SETTLE_WAIT_MS, resolve);
        // The periodic flush reports a failure.
        credit
          .flush()
          .then(resolve, () => resolve())
          .finally(cancel);
      });
    });
    await next;
    return true;
  };
}

/**
 * Copies the embedded store of a configuration into an empty PostgreSQL database. Returns a report
 * for the operator; throws an error for the operator if it fails.
 */
export async function exportEmbedded(
  { dataDir }: Config,
  url: string,
  runtime: Runtime,
): Promise<string> {
  const from = await openStore({ url: "", dataDir });
  try {
    const to = await openStore({ url, dataDir });
    try {
      const counts = await exportStore(from, to, runtime.wallMs());
      const rows = Array.from(counts, ([table, count]) => `  ${table} ${count}`);
      return (
        `copied, and the books agree:\n${rows.join("\n")}\nStart svc with DATABASE_URL set to ` +
        "this database from now on; the embedded store stays as it was."
      );
    } finally {
      await to.close();
    }
  } finally {
    await from.close();
  }
}

/**
 * The id of this process among all processes that share the store; each worker counts as a node of
 * its own. Only one service at a time uses an embedded store, so a restart continues under the same
 * ids.
 */
function nodeIdOf(
  { cluster, storageUrl }: Config,
  runtime: Runtime,
  worker: string | null,
): string {
  const node = cluster.nodeId === "" ? unnamedNode(storageUrl, runtime) : cluster.nodeId;
  return worker === null ? node : `${node}/${worker}`;
}

/** The id of a node that has none in the configuration. */
export function unnamedNode(storageUrl: string, { wallMs, random }: Runtime): string {
  if (storageUrl === "") return "main";
  const chance = Math.floor(random() * 36 ** 6).toString(36);
  return `node-${Math.floor(wallMs()).toString(36)}-${chance}`;
}

/** Limits of accounts and addresses that all processes of the service share. */
function sharedLimitsOf({ cluster, service, runtime, onError }: HostingParts) {
  const { bus, workers } = service;
  const ofWorkers = workers === 1 ? null : { ...callsOver(bus, TOKENS), members: () => workers };
  const tokens = cluster?.tokens ?? ofWorkers;
  const shared = { runtime, spacingMs: TOKENS_MS, onError };
  return {
    /** Null = this process is the whole service. */
    sharing:
      cluster?.rateShares ?? (tokens === null ? null : new RateShares({ ...tokens, ...shared })),
    openCreationLimit: tokens === null ? openAddressLimit : bookedAddressLimits(tokens),
    waitingBatches: new SharedHoldings<number>(bus, runtime, "waiting batches"),
  };
}

/** Announces changes of keys, accounts and profiles to this process and to the others. */
function changesOver(
  { changes }: HostingParts,
  { keyCache, loader }: { readonly keyCache: KeyCache; readonly loader: ProfileLoader },
): Invalidations & { readonly profile: CustomParts["changed"] } {
  const changed = (id: string): Promise<void> => keyCache.changed(new Set([id]));
  const everywhere = async (here: Promise<void>): Promise<void> => {
    await Promise.all([here, changes.announce()]);
  };
  return {
    key: (id) => everywhere(changed(id)),
    account: (id) => everywhere(changed(id)),
    // Key contexts first, so that no call is routed to a profile that is gone.
    profile: (ref) => everywhere(changed(ref.accountId).then(() => loader.changed(ref))),
  };
}
