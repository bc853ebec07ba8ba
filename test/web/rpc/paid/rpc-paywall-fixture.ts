// The server with keys, credit and a toll over a store of its own, and payments whose fate stands
// in their name. Providers answer every call with its params.

import type { TestContext } from "node:test";
import { pino } from "pino";
import { AddressLimit } from "../../../../src/core/billing/address-limit.ts";
import type { Invalidations } from "../../../../src/core/billing/invalidations.ts";
import { tariffOf } from "../../../../src/core/billing/price.ts";
import { NO_SOURCE } from "../../../../src/core/routing/answer-source.ts";
import type { Strategy } from "../../../../src/core/routing/strategy.ts";
import { methodTable } from "../../../../src/core/rpc/method-table.ts";
import { Admission } from "../../../../src/hosted/admission/admission.ts";
import { deleteKey } from "../../../../src/hosted/keys/change.ts";
import {
  createAccount,
  createAnonymousKey,
  type NewKey,
} from "../../../../src/hosted/keys/create.ts";
import { KEY_CACHE_LIMITS, KeyCache } from "../../../../src/hosted/keys/key-cache.ts";
import { keyRow } from "../../../../src/hosted/keys/key-context.ts";
import { UNCHOSEN } from "../../../../src/hosted/keys/key-fields.ts";
import { Observer } from "../../../../src/observe/observer.ts";
import { type Runtime, realRuntime } from "../../../../src/runtime.ts";
import { openStore, type Store } from "../../../../src/shared/store/store.ts";
import type { Router } from "../../../../src/upstream/engine/router.ts";
import { MemoryBudget } from "../../../../src/upstream/memory-budget.ts";
import { ProfileRegistry } from "../../../../src/upstream/registry/profile-registry.ts";
import { TimerWheel } from "../../../../src/upstream/timer-wheel.ts";
import { trustedProxiesOf } from "../../../../src/web/http/client-address.ts";
import { PurchasePaywall } from "../../../../src/web/payment/purchase-paywall.ts";
import { LegacyForms } from "../../../../src/web/rpc/answers/answer-headers.ts";
import { SeenByCallers } from "../../../../src/web/rpc/caller-view.ts";
import { RpcPaywall } from "../../../../src/web/rpc/paid/rpc-paywall.ts";
import { TargetResolver } from "../../../../src/web/rpc/target.ts";
import { listen } from "../../../../src/web/server/server.ts";
import { openCredit } from "../../../fakes/credit.ts";
import { NO_FILTERS } from "../../../fakes/filters.ts";
import { resultOutcome } from "../../../fakes/outcome.ts";
import { type FakePayments, fakePayments } from "../../../fakes/payments.ts";
import { WHOLE_RANGES } from "../../../fakes/providers.ts";
import { fakeRoutedCall } from "../../../fakes/routed-call.ts";
import { configOf, configText } from "../../../fakes/service.ts";
import { newPlace } from "../../../fakes/stores.ts";

/** What is tested with. */
export interface PaywallFixture {
  readonly url: string;
  readonly port: number;
  readonly store: Store;
  readonly payments: FakePayments;
  /** Calls that reached a provider. */
  readonly routed: () => number;
  /** An anonymous key with this much nano-USD. */
  key(balanceN?: bigint): Promise<NewKey>;
  /** A key of an account with nothing. */
  accountKey(): Promise<NewKey>;
  /** Deletes a key of an account. */
  remove(key: NewKey): Promise<void>;
  /** What its account has, leased credit included, once everything is written. */
  balanceN(key: NewKey): Promise<bigint>;
  /** Sends a call. */
  post(path: string, headers?: Readonly<Record<string, string>>, body?: unknown): Promise<Response>;
  /** Whatever was logged as a bug. */
  readonly log: () => string;
}

/** A call that every test sends. */
export const CALL = { jsonrpc: "2.0", id: 7, method: "eth_gasPrice", params: ["a"] };

const FACTORS: Readonly<Record<Strategy, number>> = {
  "load-balanced": 1,
  "latency-weighted": 1.5,
  fastest: 2,
  priority: 1,
  cheapest: 1,
};
const BUCKET = { perSecond: 1_000, burst: 1_000 };

/** Starts it; it ends with the test. */
export async function paywallFixture(
  t: TestContext,
  runtime: Runtime = realRuntime,
): Promise<PaywallFixture> {
  const { place, remove } = await newPlace("sqlite");
  const store = await openStore(place);
  const onError = (error: unknown): never => {
    throw error;
  };
  const settings = { flushIntervalMs: 50, nodeTimeoutMs: 60_000, minSliceN: 500_000 };
  const credit = await openCredit({
    store,
    runtime,
    onError,
    node: { id: "main", region: "" },
    settings,
  });
  const keyCache = new KeyCache({
    store,
    runtime,
    credit,
    misses: new AddressLimit(BUCKET),
    limits: KEY_CACHE_LIMITS,
    onError,
  });
  const tariff = tariffOf({
    weights: {},
    notificationCu: 3,
    nanoPerCu: 5_000,
    cachePercent: 100,
    factors: FACTORS,
  });
  const buckets = { managed: BUCKET, reduced: BUCKET, public: BUCKET, custom: BUCKET };
  const admission = new Admission({
    runtime,
    settings: { keyless: false, tariff, buckets, freeCuPerMonth: 0, fallbackMs: 0 },
    credit,
    keyCache,
    profiles: { prepare: () => () => {}, touch: () => {} },
  });
  const changes: Invalidations = {
    key: (id) => keyCache.changed(new Set([id])),
    account: (id) => keyCache.changed(new Set([id])),
  };
  const payments = fakePayments({ store, changes, wallMs: runtime.wallMs });
  const server = await serve({ runtime, admission, payments, store });
  t.after(async () => {
    await server.drain();
    admission.close();
    await credit.close();
    await store.close();
    await remove();
  });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    port: server.port,
    store,
    payments,
    routed: server.routed,
    log: server.log,
    key: (balanceN = 0n) =>
      createAnonymousKey(store, { name: "", grantN: balanceN }, runtime.wallMs()),
    accountKey: () => createAccount(store, UNCHOSEN, runtime.wallMs()),
    async remove({ id, accountId }) {
      await deleteKey(
        { store, changes, nowMs: runtime.wallMs() },
        { id, scope: { accountId, profiles: null } },
      );
    },
    async balanceN({ accountId }) {
      await credit.flush();
      const { balance_n } = await store.db
        .selectFrom("account")
        .select("balance_n")
        .where("id", "=", accountId)
        .executeTakeFirstOrThrow();
      const leases = await store.db
        .selectFrom("credit_lease")
        .select(["granted_n", "spent_n"])
        .where("account_id", "=", accountId)
        .execute();
      return leases.reduce((sum, it) => sum + it.granted_n - it.spent_n, balance_n);
    },
    post: (path, headers = {}, body = CALL) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
  };
}

interface Serving {
  readonly runtime: Runtime;
  readonly admission: Admission;
  readonly payments: FakePayments;
  readonly store: Store;
}

async function serve({ runtime, admission, payments, store }: Serving) {
  const config = configOf(configText([{ id: "a", url: "http://a.test" }], {}, {}, "public"));
  let log = "";
  const write = (line: string): void => {
    log += line;
  };
  const observer = new Observer(pino({ level: "error" }, { write }), runtime);
  const registry = new ProfileRegistry(config.chains, config.profiles, runtime, config.selection);
  const arrival = {
    opener: null,
    resolver: new TargetResolver(registry, observer),
    admission,
    proxies: trustedProxiesOf(["127.0.0.1"]),
    mark: "none",
  };
  let routed = 0;
  const keyOf = async (digest: string) => {
    const row = await keyRow(store, digest);
    return row === undefined ? null : { accountId: row.account_id, keyId: row.key_id };
  };
  const server = await listen(
    {
      runtime,
      limits: config.limits,
      fastPath: "auto",
      otherWorkers: null,
      rpc: {
        ...arrival,
        runtime,
        observer,
        compression: null,
        node: null,
        consistency: () => "off",
        marks: new SeenByCallers(),
        timerWheel: new TimerWheel(runtime),
        router: echo(runtime, () => routed++),
        budget: MemoryBudget.unbounded(),
        legacyForms: new LegacyForms(runtime, null),
        rpcPaywall: new RpcPaywall({
          ...arrival,
          keyOf,
          paywall: new PurchasePaywall({ payments, runtime }),
          publicUrl: null,
        }),
        payPerCall: null,
        methods: () => methodTable([]),
        filters: NO_FILTERS,
        logs: () => WHOLE_RANGES,
        deadlineMs: () => 10_000,
        limits: config.limits,
      },
      subscriptions: { open: () => () => {} },
      page: () => undefined,
      api: { serves: () => false, handle: () => {} },
      sessions: { callerOf: async () => null, operatorBy: () => false },
      isStatusPublic: () => true,
      originOf: () => ({
        ...{ address: "127.0.0.1", baseUrl: "http://x", isLocal: false },
        cookie: { form: null, id: null, isSameOrigin: false, isJson: false },
      }),
      requestId: () => "req-1",
    },
    "127.0.0.1",
    0,
  );
  return { port: server.port, drain: server.drain, routed: () => routed, log: () => log };
}

function echo(runtime: Runtime, count: () => void): Pick<Router, "route"> {
  return {
    route(request, done) {
      count();
      const [provider] = request.tracker.set.providers;
      const route = fakeRoutedCall({
        request,
        startedAtMs: runtime.now(),
        source: provider === undefined ? NO_SOURCE : { kind: "provider", provider },
        cancel: () => ({ sent: false, countedAsTimeout: false }),
      });
      const outcome = resultOutcome(
        JSON.stringify(JSON.parse(request.call.body.toString()).params),
      );
      done({ outcome, source: route.source }, route);
      return route;
    },
  };
}
