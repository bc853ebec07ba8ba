// The HTTP API on a real socket over any store, with a simulated clock. Every answer is checked
// against the contract, and that no secret is in an error or the log.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { z } from "zod";
import { type Tariff, tariffOf } from "../../src/core/billing/price.ts";
import { API_FAULTS, type ApiFaultCode } from "../../src/core/faults/api-fault.ts";
import { PUBLIC_ONLY } from "../../src/core/public-address.ts";
import { byStrategy } from "../../src/core/routing/strategy.ts";
import { methodTable } from "../../src/core/rpc/method-table.ts";
import { openAddressLimit } from "../../src/core/workers/shared-address-limits.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import { OperatorRecords } from "../../src/hosted/operator/stored-records.ts";
import { OWN_CALLS } from "../../src/observe/operator-report.ts";
import type { Payments } from "../../src/payments/payments.ts";
import { Sealer } from "../../src/secrets/sealer.ts";
import type { Store } from "../../src/shared/store/store.ts";
import type { ProviderCheck } from "../../src/upstream/provider-check.ts";
import { createActionLog } from "../../src/web/api/action-log.ts";
import { type ApiParts, createApi } from "../../src/web/api/api.ts";
import { ConsoleSessions } from "../../src/web/api/console-sessions.ts";
import { createInstanceApi, type InstanceApiParts } from "../../src/web/api/instance-api.ts";
import { firstServing } from "../../src/web/api/operation-server.ts";
import type { CustomParts, OperatorProviders } from "../../src/web/api/parts.ts";
import { createRoutes } from "../../src/web/api/routes.ts";
import { OPERATIONS } from "../../src/web/contract/contract.ts";
import { errorEnvelope } from "../../src/web/contract/instance.ts";
import { trustedProxiesOf } from "../../src/web/http/client-address.ts";
import { originOf } from "../../src/web/http/request-origin.ts";
import { PurchasePaywall } from "../../src/web/payment/purchase-paywall.ts";
import { testLive } from "./live.ts";
import { type SimulatedWorld, simulatedWorld } from "./runtime.ts";
import type { Ending } from "./stores.ts";

/** What the operator of the served API knows. */
export const OPERATOR_TOKEN = "operator-token-for-tests-only";

/** The tariff of the served API: the default one. */
export const TARIFF: Tariff = tariffOf({
  weights: {},
  notificationCu: 3,
  nanoPerCu: 5_000,
  cachePercent: 100,
  factors: byStrategy(({ factor }) => factor),
});

/** What a request carries. */
export interface Sent {
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Text and bytes go as they are, everything else as JSON. */
  readonly body?: unknown;
  /** The address it seems to come from; each call from another one otherwise. */
  readonly from?: string;
}

/** An answer. */
export interface ApiAnswered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly json: any;
  /** `operation status`, or `operation code` for refusals. */
  readonly outcome: string;
}

/** A served API. */
export interface ServedApi {
  readonly url: string;
  readonly runtime: SimulatedWorld;
  readonly store: Store;
  /** `METHOD /path`. */
  call(what: string, sent?: Sent): Promise<ApiAnswered>;
  /** Ids of keys and accounts that were told to have changed, in order. */
  readonly changed: readonly string[];
  readonly log: () => string;
}

const routeOf = createRoutes(OPERATIONS);

/** What may be different. */
export type Served = Partial<Omit<ApiParts, "paywall">> & {
  readonly payments?: Payments | null;
  readonly publicUrl?: string;
  readonly trustedProxies?: readonly string[];
  /** Of the operations that every instance has. */
  readonly instance?: Partial<InstanceApiParts>;
};

/** Serves the API of a store until the test or suite ends. */
export async function serveApi(
  t: Ending,
  store: Store,
  { payments = null, instance = {}, publicUrl, trustedProxies, ...overrides }: Served = {},
): Promise<ServedApi> {
  const runtime = simulatedWorld(1);
  const changed: string[] = [];
  const secrets = new Set<string>([OPERATOR_TOKEN]);
  let lines = "";
  const write = (fields: unknown, message?: unknown): void => {
    lines += `${JSON.stringify(fields)} ${String(message)}\n`;
  };
  const log = { error: write, warn: write };
  const records = new OperatorRecords(store);
  const common = {
    runtime,
    log,
    operatorToken: OPERATOR_TOKEN,
    recordAction: createActionLog({ runtime, records, node: null, log }),
    sessions: new ConsoleSessions({
      runtime,
      records,
      store,
      operatorToken: OPERATOR_TOKEN,
      signInLink: null,
      tries: openAddressLimit("tries", { perSecond: 10 / 60, burst: 10 }),
    }),
  };
  const live = instance.live ?? testLive(runtime);
  const ofStore = createApi({
    ...common,
    ownCalls: (query) => live.report(OWN_CALLS, query),
    store,
    chains: () => [
      {
        chainId: 1,
        chainName: "ethereum",
        name: "Ethereum Mainnet",
        aliases: [],
        blockTimeMs: 12_000,
      },
      { chainId: 8453, chainName: "base", name: "Base", aliases: [], blockTimeMs: 2_000 },
    ],
    profiles: () => ["premium", "public"],
    servedChains: () => ["ethereum", "base"],
    devnet: false,
    methods: () => methodTable([]),
    settings: {
      startingGrantCu: 5_000,
      tariff: TARIFF,
      maxKeys: 5,
      freeCuPerMonth: 1_000_000,
      fallbackMs: 30 * 86_400_000,
    },
    changes: { key: (id) => void changed.push(id), account: (id) => void changed.push(id) },
    settle: () => Promise.resolve(false),
    custom: testCustom(),
    keysPerHour: 8,
    openLimit: openAddressLimit,
    openCreationLimit: openAddressLimit,
    limits: { maxReading: 1_024, maxUnderWay: 256, missesPerMinute: 3, writesPerMinute: 10_000 },
    paywall: payments === null ? null : new PurchasePaywall({ payments, runtime }),
    audit: async () => ({ books: await audit(store), money: [], unread: [] }),
    ...overrides,
  });
  const { limits = null } = overrides;
  const ofInstance = createInstanceApi({
    ...common,
    ...(limits === null ? {} : { limits }),
    records,
    providers: NO_PROVIDERS,
    methods: () => methodTable([]),
    openLimit: openAddressLimit,
    summary: () => SUMMARY,
    purgeCache: ({ profile, chain }) =>
      Promise.resolve(
        profile === "no-such"
          ? { kind: "unknown", what: "profile" }
          : { kind: "purged", chain, complete: true, redis: "none" },
      ),
    ...instance,
    live,
  });
  const api = firstServing([ofInstance, ofStore]);
  const proxies = trustedProxiesOf(trustedProxies ?? ["127.0.0.0/8", "::1"]);
  let requests = 0;
  const server = createServer((request, response) =>
    api.handle({
      ...originOf(request, proxies, publicUrl ?? null),
      ...{ request, response, requestId: `req-${++requests}` },
    }),
  );
  // After seconds in which this process did nothing else it would close the connection on which the
  // caller sends the next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${parsePort(server.address())}`;
  let addresses = 0;
  return {
    url,
    runtime,
    store,
    changed,
    log: () => lines,
    async call(what, { token, headers = {}, body, from } = {}) {
      const [method = "GET", path = "/"] = what.split(" ");
      addresses++;
      const sender =
        from ?? `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
      const response = await fetch(url + path, {
        method,
        headers: {
          "x-forwarded-for": sender,
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: parseSent(body) }),
      });
      const text = await response.text();
      const withCookie = headers["cookie"] !== undefined;
      const answer = checked({ method, path, withCookie }, response, text);
      for (const secret of [answer.json?.key, answer.json?.management_token])
        if (typeof secret === "string") secrets.add(secret);
      for (const secret of [...secrets, token]) {
        if (secret === undefined) continue;
        assert.ok(!lines.includes(secret), "a secret is in the log");
        if (answer.status >= 400) assert.ok(!text.includes(secret), "a secret is in an error");
      }
      return answer;
    },
  };
}

/** What was asked for. */
interface Asked {
  readonly method: string;
  readonly path: string;
  readonly withCookie: boolean;
}

/** The one provider of `public` on `ethereum`, which is called `a`, and what is done with it. */
export const NO_PROVIDERS: OperatorProviders = {
  cordons: async () => [],
  placesOf: (provider) =>
    provider === "a" ? [{ profile: "public", chain: "ethereum", provider }] : [],
  cordon: async (cordon) => (cordon?.provider === "a" ? "done" : "unknown"),
  uncordon: async () => {},
  endWaits: ({ provider }) =>
    provider === "a" ? [{ transport: "http", was: "open", now: "half_open" }] : null,
  test: async ({ provider }) =>
    provider === "a"
      ? [
          {
            transport: "http",
            ok: true,
            latency_ms: 1.5,
            chain_id: 1,
            block_height: 7,
            error: null,
          },
        ]
      : null,
  compare: async ({ profile }) => (profile === "public" ? [] : null),
  reload: async () => ({
    problem: "the file has a fault",
    revision: "0123456789ab",
    node: null,
    others_asked: false,
  }),
};

const SUMMARY = { version: "0.0.0-test", hosted: true, devnet: false, public: true, node: null };

/** An answer that is as its operation declares it. */
function checked(
  { method, path, withCookie }: Asked,
  response: Response,
  text: string,
): ApiAnswered {
  const { status, headers } = response;
  const json = method === "HEAD" || text === "" ? undefined : JSON.parse(text);
  const isPaid = headers.has("payment-receipt") || headers.has("payment-response");
  assert.equal(headers.get("cache-control"), isPaid ? "private, no-store" : "no-store");
  assert.match(headers.get("x-svc-request-id") ?? "", /^req-\d+$/);
  assert.equal(headers.get("access-control-allow-origin"), withCookie ? null : "*");
  const route = routeOf(path.split("?")[0] ?? "/");
  const operation = [...(route?.operations.values() ?? [])].find(
    (it) => it.method === (method === "HEAD" ? "GET" : method),
  );
  const name = operation?.id ?? "none";
  if (status >= 400)
    return {
      status,
      headers,
      text,
      json,
      outcome: `${name} ${refusalOf(json, response, operation?.faults)}`,
    };
  const declared = Object.entries(operation?.answers ?? {}).find(
    ([it]) => it === String(status),
  )?.[1];
  assert.ok(declared !== undefined, `${name} does not declare ${status}`);
  if (declared.schema === null) assert.equal(text, "");
  else if (method !== "HEAD")
    assert.deepEqual(
      parsedBy(declared.schema, json),
      json,
      `${name} answers more or less than it declares`,
    );
  return { status, headers, text, json, outcome: `${name} ${status}` };
}

function refusalOf(
  json: unknown,
  response: Response,
  faults: readonly string[] | undefined,
): string {
  if (json === undefined) return String(response.status);
  const { error } = errorEnvelope.parse(json);
  assert.deepEqual(errorEnvelope.parse(json), json);
  const code = Object.keys(API_FAULTS).find((it): it is ApiFaultCode => it === error.code);
  assert.ok(code !== undefined, `${error.code} is no row of the table`);
  assert.equal(response.status, API_FAULTS[code].status);
  if (response.status === 402)
    assert.match(
      response.headers.get("www-authenticate") ?? "",
      /^Payment /,
      "clients throw at a 402 without a challenge",
    );
  assert.equal(
    response.headers.has("retry-after"),
    API_FAULTS[code].retryable,
    "Retry-After stands on what may be retried, and on nothing else",
  );
  assert.match(error.docs_url, new RegExp(`^http.*/docs/errors#${code}$`));
  assert.ok(error.message.length > 10 && error.next_action.length > 5);
  if (faults !== undefined && code !== "method_not_allowed")
    assert.ok(faults.includes(code), `${code} is not declared`);
  return code;
}

function parsedBy(schema: z.ZodType, json: unknown): unknown {
  return schema.parse(json);
}

function parsePort(address: string | AddressInfo | null): number {
  return (address as AddressInfo).port;
}

function parseSent(body: unknown): string | Uint8Array<ArrayBuffer> {
  return typeof body === "string"
    ? body
    : body instanceof Uint8Array
      ? (body as Uint8Array<ArrayBuffer>)
      : JSON.stringify(body);
}

/** A store that fails whenever it is asked. */
export function failingStore(error: () => Error): Store {
  const fail = (): never => {
    throw error();
  };
  return {
    engine: "sqlite",
    db: parseDb(new Proxy({}, { get: fail })),
    transaction: async () => fail(),
    close: async () => undefined,
  };
}

function parseDb(it: object): Store["db"] {
  return it as Store["db"];
}

/**
 * Custom profiles whose providers are all as they should be, but for those that are called `bad`.
 */
export function testCustom(overrides: Partial<CustomParts> = {}): CustomParts {
  return {
    sealer: new Sealer("a secret of 32 bytes, for tests only", null),
    rules: PUBLIC_ONLY,
    maxProfiles: 2,
    requestsPerSecond: 1_000,
    check: async (profile) =>
      [...profile.chains.values()].flatMap(({ chain, providers }) =>
        providers.map(({ id }): ProviderCheck => {
          const result =
            id === "bad"
              ? ({
                  kind: "failed",
                  transport: "http",
                  reason: "wrong_chain",
                  said: "chain id 5",
                } as const)
              : ({ kind: "ok", height: 1 } as const);
          return { chain: chain.chainName, provider: id, result };
        }),
      ),
    status: () => "verified",
    changed: async () => {},
    ...overrides,
  };
}
