// Payments as they are opened from settings, over real chains: stock clients pay each offer, the
// same payment shown again to another process has the same result, and what has moved is what was
// credited.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { Mppx, tempo } from "mppx/client";
import { charge } from "mppx/evm/client";
import { createClient, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { tempoLocalnet } from "viem/tempo/chains";
import { BENEFICIARIES } from "../../src/app/beneficiaries.ts";
import { NANO_PER_UNIT } from "../../src/core/billing/payment.ts";
import { audit } from "../../src/hosted/audit/audit.ts";
import type { Payments } from "../../src/payments/payments.ts";
import { openPayments } from "../../src/payments/start.ts";
import { realRuntime } from "../../src/runtime.ts";
import { openStore, type Store } from "../../src/shared/store/store.ts";
import { ALONE } from "../fakes/jobs.ts";
import { type PaymentChains, startPaymentChains } from "../fakes/payment-chains.ts";
import { type Ending, newPlace } from "../fakes/stores.ts";
import { balanceOf, createAccount } from "../hosted/accounts/account-fixture.ts";
import { markOf, orderOf, type Wish } from "./payment-fixture.ts";

const UNITS = 750_000n;
const WISH: Wish = {
  purpose: { kind: "credit_account", accountId: "acc_a" },
  units: UNITS,
  request: "buy",
};
const SECRET = "a secret of the tests, long enough for it";

test("stock clients pay every offer, and each repeat has its first result, also after a restart", async (t) => {
  const chains = await startPaymentChains();
  t.after(() => chains.close());
  const store = await emptyStore(t);
  await createAccount(store, "acc_a");
  let log = "";
  const start = (): Promise<Payments> => opened({ chains, store, write: (line) => (log += line) });
  let payments = await start();
  t.after(() => payments.close());
  const counter = await serve(t, () => payments);
  const before = await received(chains);
  const results: { readonly name: string; readonly sent: Sent; readonly answer: string }[] = [];
  for (const [name, pay] of Object.entries(clients(chains))) {
    const response = await pay(counter.url);
    const answer = await response.text();
    assert.equal(response.status, 200, `${name}: ${answer}`);
    results.push({ name, sent: counter.last(), answer });
  }
  assert.equal((await received(chains)) - before, UNITS * BigInt(results.length));
  assert.equal(await balanceOf(store, "acc_a"), UNITS * BigInt(results.length) * NANO_PER_UNIT);
  await payments.close();
  payments = await start();
  for (const { name, sent, answer } of results) {
    const response = await fetch(counter.url, { headers: sent });
    assert.deepEqual([response.status, await response.text()], [200, answer], name);
  }
  assert.equal(await balanceOf(store, "acc_a"), UNITS * BigInt(results.length) * NANO_PER_UNIT);
  assert.deepEqual(await audit(store), []);
  for (const { sent } of results)
    for (const value of Object.values(sent))
      assert.ok(!log.includes(value.slice(-40)), "a payment is in the log");
  t.diagnostic(results.map(({ name }) => name).join(", "));
});

type Sent = Readonly<Record<string, string>>;

async function emptyStore(t: Ending): Promise<Store> {
  const { place, remove } = await newPlace("sqlite");
  const store = await openStore(place);
  t.after(async () => {
    await store.close();
    await remove();
  });
  return store;
}

function opened({
  chains,
  store,
  write,
}: {
  readonly chains: PaymentChains;
  readonly store: Store;
  readonly write: (line: string) => void;
}): Promise<Payments> {
  const say = (fields: unknown, message?: unknown): void =>
    write(`${JSON.stringify(fields)} ${String(message)}\n`);
  return openPayments({
    store,
    runtime: realRuntime,
    log: { error: say, warn: say, info: say },
    beneficiaries: BENEFICIARIES,
    changes: { key: () => {}, account: () => {} },
    node: "main",
    claims: ALONE,
    settings: {
      rails: [chains.rails.tempo, chains.rails.evm, chains.rails.session],
      minN: 100_000_000n,
      maxN: 100_000_000_000n,
      customDayN: 1_300_000_000n,
      maxCustomDays: 30,
      waitMs: 15_000,
      offerMs: 60_000,
    },
    realm: "svc.test",
    secret: SECRET,
    previousSecret: null,
  });
}

/** A small server that sells one thing. */
async function serve(
  t: Ending,
  payments: () => Payments,
): Promise<{ readonly url: string; readonly last: () => Sent }> {
  let last: Sent = {};
  const server = createServer(async (request, response) => {
    const name =
      request.headers["payment-signature"] === undefined ? "authorization" : "payment-signature";
    const text = request.headers[name];
    const write = (headers: readonly string[]): void => {
      for (let at = 0; at < headers.length; at += 2)
        response.appendHeader(headers[at] ?? "", headers[at + 1] ?? "");
    };
    if (typeof text !== "string") {
      write((await payments().challenge(orderOf(WISH)))?.headers ?? []);
      response.writeHead(402).end("{}");
      return;
    }
    last = { [name]: text };
    const taken = await payments().take<{ readonly kind: "refused" }>(
      { protocol: name === "authorization" ? "mpp" : "x402", text },
      markOf(WISH.request),
      async () => orderOf(WISH),
    );
    if (taken.kind === "paid") write(taken.headers);
    const shown = taken.kind === "paid" ? { ...taken.purchase, ...taken.fulfilment } : taken;
    response
      .writeHead(taken.kind === "paid" ? 200 : 503)
      .end(JSON.stringify(shown, (_, it) => (typeof it === "bigint" ? `${it}` : it)));
  });
  // After seconds in which this process did nothing else it would close the connection on which a
  // client sends the next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, last: () => last };
}

async function received({ tempo: tempoChain, evm, recipient }: PaymentChains): Promise<bigint> {
  return (await tempoChain.balanceOf(recipient.address)) + (await evm.balanceOf(recipient.address));
}

/** Clients, each of which pays the first offer that it understands. */
function clients({
  payer,
  tempo: tempoChain,
  evm,
}: PaymentChains): Readonly<Record<string, (url: string) => Promise<Response>>> {
  const account = privateKeyToAccount(payer.key);
  const client = createClient({
    chain: { ...tempoLocalnet, id: tempoChain.chainId },
    transport: http(tempoChain.rpcUrl),
    pollingInterval: 20,
  });
  const { name, version } = evm.token;
  const network = `eip155:${evm.chainId}` as const;
  const x402 = x402Client.fromConfig({
    schemes: [{ network, client: new ExactEvmScheme(account) }],
    spendControls: { allowedAssets: [{ network, asset: evm.token.address }] },
  });
  const mppx = (methods: Parameters<typeof Mppx.create>[0]["methods"]) => (url: string) =>
    Mppx.create({ methods, polyfill: false }).fetch(url);
  return {
    "mppx tempo, sent by the service": mppx([
      tempo.charge({ account, getClient: () => client, mode: "pull" }),
    ]),
    "mppx tempo, sent by the payer": mppx([
      tempo.charge({ account, getClient: () => client, mode: "push" }),
    ]),
    "mppx evm": mppx([
      charge({ account, authorization: { name, version }, maxAtomicAmount: `${UNITS}` }),
    ]),
    "@x402/fetch": (url) => wrapFetchWithPayment(fetch, x402)(url),
  };
}
