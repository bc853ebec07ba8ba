// The pages for people on a real socket over an embedded store, with a simulated clock: what walks
// with a browser open when time has to pass.
import { createServer } from "node:http";
import { openAddressLimit } from "../../src/core/workers/shared-address-limits.ts";
import { createClaimLink } from "../../src/hosted/accounts/claim-links.ts";
import { type NewConnection, requestConnection } from "../../src/hosted/accounts/connections.ts";
import {
  createAnonymousKey,
  createAccount as createOwned,
  type NewKey,
} from "../../src/hosted/keys/create.ts";
import { UNCHOSEN } from "../../src/hosted/keys/key-fields.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { trustedProxiesOf } from "../../src/web/http/client-address.ts";
import { originOf } from "../../src/web/http/request-origin.ts";
import { createAccountPages } from "../../src/web/pages/account/account-pages.ts";
import { TARIFF } from "./hosted.ts";
import { type SimulatedWorld, simulatedWorld } from "./runtime.ts";
import { type Ending, newPlace } from "./stores.ts";

/** Served pages. */
export interface ServedPeople {
  readonly url: string;
  readonly store: Store;
  readonly runtime: SimulatedWorld;
  readonly log: () => string;
  anonymousKey(name?: string): Promise<NewKey>;
  account(): Promise<NewKey>;
  /** The token of a new claim link of an account. */
  claimToken(accountId: string): Promise<string>;
  connection(name?: string): Promise<NewConnection>;
  /** Sends a form as a browser would from the page itself. */
  submit(
    path: string,
    fields: Readonly<Record<string, string>>,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Response>;
}

/** Serves the pages until the test ends. */
export async function servePeople(
  t: Ending,
  given: Partial<Parameters<typeof createAccountPages>[0]> = {},
): Promise<ServedPeople> {
  const { place, remove } = await newPlace("sqlite");
  t.after(remove);
  const store = await openStore(place);
  t.after(() => store.close().catch(() => undefined));
  const runtime = simulatedWorld(1);
  let log = "";
  const write = (fields: unknown, message?: unknown): void => {
    log += `${JSON.stringify(fields)} ${String(message)}\n`;
  };
  const settings = { tariff: TARIFF, maxKeys: 5 };
  const changes = { key: () => undefined, account: () => undefined };
  const proxies = trustedProxiesOf(["127.0.0.0/8"]);
  const people = createAccountPages({
    store,
    runtime,
    settings,
    changes,
    keysPerHour: 5,
    openLimit: openAddressLimit,
    openCreationLimit: openAddressLimit,
    log: { error: write, warn: write },
    ...given,
  });
  let requests = 0;
  const server = createServer((request, response) => {
    if (people.serves((request.url ?? "").split("?")[0] ?? ""))
      people.handle({
        ...originOf(request, proxies, null),
        ...{ request, response, requestId: `req-${++requests}` },
      });
    else response.writeHead(404).end();
  });
  // After seconds in which this process did nothing else it would close the connection on which the
  // caller sends the next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  return {
    url,
    store,
    runtime,
    log: () => log,
    anonymousKey: (name = "research agent") =>
      createAnonymousKey(store, { name, grantN: 25_000_000n }, runtime.wallMs()),
    account: () => createOwned(store, { ...UNCHOSEN, name: "first" }, runtime.wallMs()),
    async claimToken(accountId) {
      const link = await createClaimLink(store, accountId, runtime.wallMs());
      if (link.kind === "api_fault") throw new Error(link.message);
      return link.token;
    },
    async connection(name = "deploy bot") {
      const made = await requestConnection(store, name, runtime.wallMs());
      if (made.kind === "api_fault") throw new Error(made.message);
      return made;
    },
    submit: (path, fields, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        body: new URLSearchParams(fields),
        headers: { origin: url, "sec-fetch-site": "same-origin", ...headers },
      }),
  };
}
