// The server with keys, credit and a toll over a store of its own, and payments whose fate stands in their name. Providers answer every call with its params.

import type { TestContext } from "node:test";
import { pino } from "pino";
import { createAddressLimit } from "../../src/core/address-limit.ts";
import type { Strategy } from "../../src/core/attempt.ts";
import { methodTable } from "../../src/core/method-table.ts";
import { tariffOf } from "../../src/core/price.ts";
import { openCredit } from "../../src/hosted/credit.ts";
import { createGate, type Gate } from "../../src/hosted/gate.ts";
import { keyRow } from "../../src/hosted/holder.ts";
import { createHolders, HOLDER_LIMITS } from "../../src/hosted/holders.ts";
import type { Changes } from "../../src/hosted/keys.ts";
import { deleteKey } from "../../src/hosted/keys-change.ts";
import { createAccount, createAnonymousKey, type NewKey } from "../../src/hosted/keys-create.ts";
import { EVERY_PROFILE } from "../../src/hosted/keys-profiles.ts";
import { openStore, type Store } from "../../src/hosted/store.ts";
import { createObserver } from "../../src/observe.ts";
import { createDirectory } from "../../src/upstream/directory.ts";
import { MemoryBudget } from "../../src/upstream/memory-budget.ts";
import type { Route, Router } from "../../src/upstream/router.ts";
import { createWheel } from "../../src/upstream/wheel.ts";
import { trustedProxiesOf } from "../../src/web/client-address.ts";
import { createOldForms } from "../../src/web/old-forms.ts";
import { createPaywall } from "../../src/web/paywall.ts";
import { createResolver } from "../../src/web/rpc/address.ts";
import { createToll } from "../../src/web/rpc/toll.ts";
import { listen } from "../../src/web/server.ts";
import { realWorld, type World } from "../../src/world.ts";
import { NO_FILTERS } from "../fakes/filters.ts";
import { resultOutcome } from "../fakes/outcome.ts";
import { type FakePayments, fakePayments } from "../fakes/payments.ts";
import { configOf, configText } from "../fakes/service.ts";
import { newPlace } from "../fakes/stores.ts";

/** What is tested with. */
export interface TollScene {
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

const FACTORS: Readonly<Record<Strategy, number>> = { "load-balanced": 1, "latency-weighted": 1.5, fastest: 2, priority: 1 };
const BUCKET = { perSecond: 1_000, burst: 1_000 };

/** Starts it; it ends with the test. */
export async function tollScene(t: TestContext, world: World = realWorld): Promise<TollScene> {
  const { place, remove } = await newPlace("sqlite");
  const store = await openStore(place);
  const onError = (error: unknown): never => {
    throw error;
  };
  const settings = { flushIntervalMs: 50, nodeTimeoutMs: 60_000, minSliceN: 500_000 };
  const credit = await openCredit({ store, world, onError, node: { id: "main", region: "" }, settings });
  const holders = createHolders({ store, world, credit, misses: createAddressLimit(BUCKET), limits: HOLDER_LIMITS, onError });
  const tariff = tariffOf({ weights: {}, notificationCu: 3, nanoPerCu: 5_000, factors: FACTORS });
  const buckets = { managed: BUCKET, reduced: BUCKET, public: BUCKET, custom: BUCKET };
  const gate = createGate({
    world,
    settings: { keyless: false, tariff, buckets, freeCuPerMonth: 0, fallbackMs: 0 },
    credit,
    holders,
    profiles: { prepare: () => () => {}, touch: () => {} },
  });
  const changes: Changes = { key: (id) => holders.keyChanged(id), account: (id) => holders.accountChanged(id) };
  const payments = fakePayments({ store, changes, wallMs: world.wallMs });
  const server = await serve({ world, gate, payments, store });
  t.after(async () => {
    await server.drain();
    gate.close();
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
    key: (balanceN = 0n) => createAnonymousKey(store, { name: "", grantN: balanceN }, world.wallMs()),
    accountKey: () => createAccount(store, { name: "", profiles: EVERY_PROFILE }, world.wallMs()),
    async remove({ id, accountId }) {
      await deleteKey({ store, changes, nowMs: world.wallMs() }, { id, scope: { accountId, profiles: null } });
    },
    async balanceN({ accountId }) {
      await credit.flush();
      const { balance_n } = await store.db.selectFrom("account").select("balance_n").where("id", "=", accountId).executeTakeFirstOrThrow();
      const leases = await store.db.selectFrom("credit_lease").select(["granted_n", "spent_n"]).where("account_id", "=", accountId).execute();
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
  readonly world: World;
  readonly gate: Gate;
  readonly payments: FakePayments;
  readonly store: Store;
}

async function serve({ world, gate, payments, store }: Serving) {
  const config = configOf(configText([{ id: "a", url: "http://a.test" }], {}, {}, "public"));
  let log = "";
  const write = (line: string): void => {
    log += line;
  };
  const observer = createObserver(pino({ level: "error" }, { write }), world);
  const directory = createDirectory(config.chains, config.profiles, world, config.selection);
  const arrival = { resolver: createResolver(directory, observer), gate, proxies: trustedProxiesOf(["127.0.0.1"]) };
  let routed = 0;
  const keyOf = async (digest: string) => {
    const row = await keyRow(store, digest);
    return row === undefined ? null : { accountId: row.account_id, keyId: row.key_id };
  };
  const server = await listen(
    {
      world,
      limits: config.limits,
      operatorToken: null,
      rpc: {
        ...arrival,
        world,
        observer,
        compression: null,
        wheel: createWheel(world),
        router: echo(world, () => routed++),
        budget: MemoryBudget.unbounded(),
        oldForms: createOldForms(world, null),
        toll: createToll({ ...arrival, keyOf, paywall: createPaywall({ payments, world }), publicUrl: null }),
        payPerCall: null,
        methods: () => methodTable([]),
        filters: NO_FILTERS,
        deadlineMs: () => 10_000,
        limits: config.limits,
      },
      subscriptions: { open: () => () => {} },
      page: () => undefined,
      api: null,
      baseUrl: () => "http://x",
      requestId: () => "req-1",
    },
    "127.0.0.1",
    0,
  );
  return { port: server.port, drain: server.drain, routed: () => routed, log: () => log };
}

function echo(world: World, count: () => void): Router {
  return {
    route(request, done) {
      count();
      const [provider] = request.tracker.set.providers;
      const route: Route = {
        request,
        plan: { candidates: [], excluded: [] },
        traces: [],
        startedAtMs: world.now(),
        answeredBy: provider ?? null,
        cancel: () => ({ sent: false, countedAsTimeout: false }),
      };
      done(resultOutcome(JSON.stringify(JSON.parse(request.call.body.toString()).params)), route);
      return route;
    },
  };
}
