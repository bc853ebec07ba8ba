// Builds the hosted half from a configuration: store, credit, admission and API; starts and closes
// it.

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
import { NO_SHARED_HOLDINGS, SharedHoldings } from "../core/workers/shared-holdings.ts";
import { Admission, type AdmissionParts } from "../hosted/admission/admission.ts";
import { parseProblems } from "../hosted/audit/audit-results.ts";
import { exportStore } from "../hosted/audit/export.ts";
import { type Credit, type CreditParts, openCredit } from "../hosted/credit/credit.ts";
import { KEY_CACHE_LIMITS, KeyCache } from "../hosted/keys/key-cache.ts";
import { keyRow } from "../hosted/keys/key-context.ts";
import { type LegacyFormUsage, openLegacyFormUsage } from "../hosted/legacy-form-usage.ts";
import type { ProfileLoader } from "../hosted/profiles/profile-loader.ts";
import { holdsPayments, paymentsOnDemand, sessionsOnDemand } from "../payments/on-demand.ts";
import type { Payments } from "../payments/payments.ts";
import type { RailSettings } from "../payments/rails/rails.ts";
import type { SessionProcess } from "../payments/session/holds.ts";
import type { Sessions } from "../payments/session/sessions.ts";
import { type Runtime, within } from "../runtime.ts";
import { localSecret } from "../secrets/sealer.ts";
import {
  type BookedLimitParts,
  bookedAddressLimits,
} from "../shared/leases/booked-address-limits.ts";
import { RateShares } from "../shared/leases/rate-shares.ts";
import { type JobClaims, repeatJob } from "../shared/nodes/job-claims.ts";
import { startRetention } from "../shared/nodes/retention.ts";
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
import { followerOf, type ServiceNode, workerProcessId } from "./cluster.ts";
import { type CustomServing, openCustomProfiles } from "./custom-profiles.ts";
import type { OperatorConsole } from "./operators/operator-console.ts";
import { limitsOf, type ServiceParts, workerOf } from "./service-parts.ts";
import { creditOver, tokensOver } from "./workers/supervisor-objects.ts";

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
  /** Null = there are no payment channels. */
  readonly sessions: Sessions | null;
  readonly credit: Pick<Credit, "metered" | "maySpend">;
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
/** Nodes start their hours at different times: one that comes a little early still audits. */
const AUDIT_SLACK_MS = 600_000;
/** Look-ups of unknown keys per address. */
const MISSES = { perSecond: 0.5, burst: 30 };
/**
 * Reads within this time share one write of pending usage; a read waits no longer than this for
 * others.
 */
const SETTLE_MS = 25;
const SETTLE_WAIT_MS = 500;
/** Time limit of each step of closing. */
const CLOSE_MS = 5_000;
/** Between two questions of a worker for tokens of rate limits. */
const TOKENS_MS = 5;
/** Smallest lease of credit, in compute units. */
const MIN_SLICE_CU = 100;

/** Starts the services on the store. */
export async function openHosting(parts: HostingParts): Promise<Hosting> {
  const { config, settings, runtime, log, store, cluster, claims, onError } = parts;
  const legacyForms = await legacyFormsOf(parts);
  const custom = await openCustomProfiles(parts);
  const openLimit = limitsOf(parts);
  const rateShares = rateSharesOf(parts);
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
    ...sharedLimitsOf(parts, rateShares),
  });
  const changed = changesOver(parts, { keyCache, loader: custom.loader });
  const shared = { config, settings, runtime, log, store, claims };
  const payments = await paymentsOf({ ...shared, changes: changed, node });
  const paywall = payments === null ? null : new PurchasePaywall({ payments, runtime, openLimit });
  const sessions = await sessionsOf({ ...shared, process: processOf(settings, credit) });
  const customParts = { ...custom.written, changed: changed.profile };
  const api = apiOf(parts, {
    ...{ changes: changed, paywall, credit, custom: customParts, openLimit },
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
    async close() {
      await endJobs().catch(onError);
      admission.close();
      custom.loader.close();
      await leaveOthers(parts, rateShares);
      await closeStore(parts, { payments, sessions, credit, legacyForms, store });
    },
  };
}

/** Leaves the cluster and stops following changes. */
async function leaveOthers(
  { cluster, changes, runtime, onError }: HostingParts,
  rateShares: RateShares | null,
): Promise<void> {
  rateShares?.close();
  changes.close();
  await within(runtime, CLOSE_MS, cluster?.close() ?? Promise.resolve()).catch(onError);
}

async function legacyFormsOf({
  store,
  runtime,
  settings,
  log,
  claims,
  onError,
}: HostingParts): Promise<LegacyFormUsage> {
  const policy = settings.legacyForms;
  const legacyForms = await openLegacyFormUsage({ store, runtime, policy, claims, onError });
  if (legacyForms.off.size > 0)
    log.info({ forms: [...legacyForms.off] }, "legacy forms of requests that are not served");
  return legacyForms;
}

function creditOf(parts: HostingParts, node: string): Promise<Credit> {
  const { store, runtime, settings, cluster, changes, onError } = parts;
  const hasWorkers = cluster === null && parts.service.workers > 1;
  return openCredit({
    store,
    runtime,
    onError,
    node: { id: node, region: cluster?.node.region ?? "" },
    ...(cluster === null ? {} : { replaces: cluster.replaces, recalls: true }),
    ...(cluster === null ? {} : { agreedMs: () => cluster.membership.databaseMs() }),
    ...(hasWorkers ? { recalls: true, recorded: () => changes.written() } : {}),
    ...processIdOf(parts),
    ...transactionsOf(parts),
    settings: {
      flushIntervalMs: settings.flushIntervalMs,
      nodeTimeoutMs: settings.nodeTimeoutMs,
      minSliceN: MIN_SLICE_CU * settings.tariff.nanoPerCu,
      smallestN: smallestPriceN(settings.tariff),
    },
  });
}

/** Workers are known by their place, so that the supervisor can tell what they leave behind. */
function processIdOf(parts: HostingParts): Pick<CreditParts, "processId"> {
  const { cluster, service } = parts;
  if (cluster !== null) return { processId: cluster.processId };
  const worker = workerOf(service);
  return worker === null ? {} : { processId: workerProcessId(service.id, worker) };
}

interface ApiCollaborators {
  readonly openLimit: OpenAddressLimit;
  readonly changes: Invalidations;
  readonly paywall: PurchasePaywall | null;
  readonly credit: Credit;
  readonly custom: CustomParts;
}

/** The account pages and the management API. */
function apiOf(
  parts: HostingParts,
  { changes, paywall, credit, custom, openLimit }: ApiCollaborators,
): Api {
  const { config, settings, runtime, log, store, serving, methods, console, onError } = parts;
  const { publicUrl, trustedProxies, operatorToken } = config.server;
  const common = {
    runtime,
    store,
    log,
    settings,
    changes,
    publicUrl,
    trustedProxies,
    keysPerHour: settings.keysPerHour,
    openLimit,
    openCreationLimit: creationLimitsOf(parts),
  };
  const api = createApi({
    ...common,
    ...instanceParts(config, serving),
    methods,
    custom,
    paywall,
    audit: () =>
      auditForOperator({
        ...{ store, runtime, onError, rails: settings.payments.rails },
        run: { runner: "operator", node: parts.view?.identity.id ?? null },
      }),
    settle: settling(credit, runtime),
    operatorToken,
    sessions: console.sessions,
    recordAction: console.recordAction,
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
  await within(runtime, CLOSE_MS, payments?.close() ?? Promise.resolve()).catch(onError);
  await within(runtime, CLOSE_MS, sessions?.close() ?? Promise.resolve()).catch(onError);
  await within(runtime, CLOSE_MS, credit.close()).catch((error: unknown) => {
    const unwritten = `${usdText(credit.unwrittenN())} USD`;
    log.error(
      { problem: errorText(error), unwritten },
      "the store cannot be written: what was served since the last write is not billed",
    );
  });
  await within(runtime, CLOSE_MS, legacyForms.close()).catch(onError);
  await within(runtime, CLOSE_MS, store.close()).catch(onError);
}

/** What the API shows of the instance: its chains, and the profiles that every account can use. */
function instanceParts({ chains, devnet }: Config, { servedChains }: CustomServing) {
  return { chains, devnet, profiles: () => MANAGED, servedChains };
}

/** Jobs that one node of several does; the returned function ends them. */
function startJobs(parts: HostingParts): () => Promise<void> {
  const audit = { name: "audit", everyMs: AUDIT_MS - AUDIT_SLACK_MS, run: () => auditOnce(parts) };
  const endAudits = repeatJob({ ...parts, everyMs: AUDIT_MS }, audit);
  const endRetention = startRetention(parts);
  return async () => {
    // An audit that is under way only reads: its end is not waited for.
    void endAudits();
    await within(parts.runtime, CLOSE_MS, endRetention());
  };
}

async function auditOnce(parts: HostingParts): Promise<void> {
  const run = { runner: "service", node: parts.view?.identity.id ?? null } as const;
  const result = await auditBooks({ ...parts, run });
  if (result.state === "balanced") return;
  const differences = parseProblems(result).slice(0, 10);
  parts.log.error({ differences }, "the books do not agree");
}

interface PaymentHostingParts
  extends Pick<HostingParts, "config" | "settings" | "runtime" | "log"> {
  readonly store: Store;
  readonly claims: JobClaims;
  readonly changes: Invalidations;
  readonly node: string;
}

/**
 * Payments, if rails are configured; null = nothing can be bought. Their libraries are imported
 * here, so that services without payments do not load them.
 */
async function paymentsOf({
  config,
  settings: { payments: settings },
  node,
  ...parts
}: PaymentHostingParts): Promise<Payments | null> {
  if (settings.rails.length === 0) return null;
  const open = async (): Promise<Payments> => {
    const { openPayments } = await import("../payments/start.ts");
    const secrets = challengeSettings(config);
    return openPayments({ ...parts, beneficiaries: BENEFICIARIES, node, settings, ...secrets });
  };
  return (await opensOnDemand(settings.rails, parts.store))
    ? paymentsOnDemand(settings, open)
    : open();
}

/** Local rails whose store holds no payment yet wait for the first one. */
async function opensOnDemand(rails: readonly RailSettings[], store: Store): Promise<boolean> {
  return rails.every((rail) => rail.local) && !(await holdsPayments(store));
}

interface SessionHostingParts extends Omit<PaymentHostingParts, "changes" | "node"> {
  readonly process: SessionProcess;
}

/** This process among those that take calls of channels. */
function processOf({ flushIntervalMs }: HostingParts["settings"], credit: Credit): SessionProcess {
  return { presence: () => credit.presence(), heartbeatMs: flushIntervalMs };
}

/** Pay-per-call, if a rail supports it; null = not available. Imported like payments. */
async function sessionsOf({
  config,
  settings,
  ...parts
}: SessionHostingParts): Promise<Sessions | null> {
  const { rails: all, offerMs, waitMs } = settings.payments;
  const rails = all.filter((rail) => rail.kind === "session");
  if (rails.length === 0) return null;
  const open = async (): Promise<Sessions> => {
    const { openSessions } = await import("../payments/session/open.ts");
    const rateLimitSize = settings.buckets.managed;
    const secrets = challengeSettings(config);
    return openSessions({ ...parts, rails, offerMs, waitMs, rateLimitSize, ...secrets });
  };
  return (await opensOnDemand(rails, parts.store)) ? sessionsOnDemand(open) : open();
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
 * Batches requests to write pending usage within some milliseconds into one write; stops waiting if
 * the store takes too long.
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
        // The periodic flush reports the failure.
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
      const rows = Object.entries(counts).map(([table, count]) => `  ${table} ${count}`);
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
 * The id of this process among those that share the store; each worker is a node of its own. An
 * embedded store has one service at a time, so it continues under the same ids.
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

/** Where another process has the embedded file open, it runs the transactions of credit. */
function transactionsOf(parts: HostingParts): Pick<CreditParts, "transactions"> {
  const { service, store } = parts;
  return service.workers === 1 || store.engine !== "sqlite"
    ? {}
    : { transactions: creditOver(service.bus) };
}

/** How the rate limits of accounts are shared; null = this process is the whole service. */
function rateSharesOf(parts: HostingParts): RateShares | null {
  const { cluster, runtime, onError } = parts;
  if (cluster !== null) return cluster.rateShares;
  const tokens = tokensOf(parts);
  if (tokens === null) return null;
  return new RateShares({ ...tokens, runtime, spacingMs: TOKENS_MS, onError });
}

/** Where tokens of limits are asked for; null = this process is the whole service. */
function tokensOf(parts: HostingParts): BookedLimitParts | null {
  const { cluster, service } = parts;
  if (cluster !== null) return cluster.tokens;
  const { bus, workers } = service;
  return workers === 1 ? null : { request: tokensOver(bus), members: () => workers };
}

/** How limits of new keys are opened. */
function creationLimitsOf(parts: HostingParts): OpenCreationLimit {
  const tokens = tokensOf(parts);
  return tokens === null ? openAddressLimit : bookedAddressLimits(tokens);
}

/** What bounds accounts over all processes of the service. */
function sharedLimitsOf(
  parts: HostingParts,
  sharing: RateShares | null,
): Pick<AdmissionParts, "sharing" | "waitingBatches"> {
  const { bus, workers } = parts.service;
  const waitingBatches =
    workers === 1
      ? NO_SHARED_HOLDINGS
      : new SharedHoldings<number>(bus, parts.runtime, "waiting batches");
  return { sharing, waitingBatches };
}

/** Tells of changes, here and in the other workers. */
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
