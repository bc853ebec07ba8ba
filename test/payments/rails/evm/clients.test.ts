// Stock clients pay by the EIP-3009 rail: mppx over MPP and over x402, and @x402/fetch. A small
// server stands for the service; the chain is real.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { ExactEvmScheme } from "@x402/evm/exact/client";
import { decodePaymentResponseHeader, wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { Receipt } from "mppx";
import { Mppx } from "mppx/client";
import { charge } from "mppx/evm/client";
import { privateKeyToAccount } from "viem/accounts";
import { Protocol } from "../../../../src/payments/protocol.ts";
import { createEvmRail } from "../../../../src/payments/rails/evm/evm-rail.ts";
import type { Rail } from "../../../../src/payments/rails/rail.ts";
import { patientWorld } from "../../patient-world.ts";
import { accepted, type EvmFixture, Purchase, startEvmFixture, step } from "./evm-fixture.ts";

const UNITS = 750_000n;
const protocol = new Protocol({
  realm: "svc.test",
  secret: "a secret of the tests, long enough for it",
  previousSecret: null,
});

let fixture: EvmFixture;
let rail: Rail;
let server: Server;
let url: string;

before(async () => {
  fixture = await startEvmFixture();
  rail = createEvmRail({ ...fixture.settings, confirmations: 1 }, { runtime: patientWorld });
  server = createServer(async (request, response) => {
    const text = request.headers["payment-signature"] ?? request.headers.authorization;
    const headers = text === undefined ? offers() : await paid(String(text));
    const pairs = Array.from(
      { length: headers.length / 2 },
      (_, at) => [headers[2 * at] ?? "", headers[2 * at + 1] ?? ""] as const,
    );
    for (const [name, value] of pairs) response.appendHeader(name, value);
    response.writeHead(text === undefined ? 402 : 200).end("{}");
  });
  // After seconds in which this process did nothing else it would close the connection on which a
  // client sends the next request.
  server.keepAliveTimeout = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
});

after(async () => {
  server.closeAllConnections();
  await Promise.all([new Promise((resolve) => server.close(resolve)), fixture.close()]);
});

function offers(): readonly string[] {
  const x402 = rail.x402Offer(UNITS, 300_000);
  return protocol.challenge({
    offers: [rail.offer(UNITS)],
    x402: x402 === null ? [] : [x402],
    digest: `sha-256=:${"A".repeat(43)}=:`,
    fingerprint: "fingerprint",
    resourceUrl: url,
    description: "a test",
    expiresAtMs: Date.now() + 300_000,
    keepsAuthorization: false,
  });
}

/** Settles a payment, and returns the headers of its receipt. */
async function paid(text: string): Promise<readonly string[]> {
  const read = protocol.read({ protocol: "mpp", text });
  if ("kind" in read) assert.fail(read.reason);
  const payment = await accepted(rail, read, UNITS);
  assert.equal(await rail.check(payment), null);
  const purchase = new Purchase(payment);
  await step(rail, purchase);
  await fixture.mine(2);
  const truth = await rail.look(purchase);
  if (truth.kind !== "settled") assert.fail(truth.kind);
  const network = `eip155:${rail.chainId}`;
  return protocol.receipt({
    protocol: read.protocol,
    purchaseId: "p1",
    method: "evm",
    txHash: truth.txHash,
    network,
    payer: payment.payer,
    atMs: Date.now(),
  });
}

/** What the recipient got while a client paid. */
async function received(
  pay: () => Promise<Response>,
): Promise<{ readonly response: Response; readonly units: bigint }> {
  const { evm, recipient } = fixture.chains;
  const had = await evm.balanceOf(recipient.address);
  const response = await pay();
  return { response, units: (await evm.balanceOf(recipient.address)) - had };
}

function mppxClient(offer: "mpp" | "x402"): (input: string) => Promise<Response> {
  const { payer, evm } = fixture.chains;
  const { name, version } = evm.token;
  const fetchOne: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    const headers = new Headers(response.headers);
    headers.delete(offer === "mpp" ? "PAYMENT-REQUIRED" : "WWW-Authenticate");
    return new Response(response.body, { status: response.status, headers });
  };
  const method = charge({
    account: privateKeyToAccount(payer.key),
    authorization: { name, version },
    maxAtomicAmount: `${UNITS}`,
  });
  return (input) =>
    Mppx.create({ methods: [method], fetch: fetchOne, polyfill: false }).fetch(input);
}

test("mppx pays an MPP challenge and understands the receipt", async () => {
  const { response, units } = await received(() => mppxClient("mpp")(url));
  assert.equal(response.status, 200);
  assert.equal(units, UNITS);
  assert.match(Receipt.fromResponse(response).reference, /^0x[0-9a-f]{64}$/);
});

test("mppx pays an x402 offer", async () => {
  const { response, units } = await received(() => mppxClient("x402")(url));
  assert.equal(response.status, 200);
  assert.equal(units, UNITS);
});

test("@x402/fetch pays, and reads from the response where the money went", async () => {
  const signer = privateKeyToAccount(fixture.chains.payer.key);
  const network = `eip155:${rail.chainId}` as const;
  const client = x402Client.fromConfig({
    schemes: [{ network, client: new ExactEvmScheme(signer) }],
    // Without this it pays in well-known tokens only, and one dollar at most.
    spendControls: { allowedAssets: [{ network, asset: rail.token }] },
  });
  const { response, units } = await received(() => wrapFetchWithPayment(fetch, client)(url));
  assert.equal(response.status, 200);
  assert.equal(units, UNITS);
  const settled = decodePaymentResponseHeader(response.headers.get("PAYMENT-RESPONSE") ?? "");
  assert.deepEqual(
    { success: settled.success, network: settled.network, payer: settled.payer },
    { success: true, network: "eip155:31337", payer: signer.address },
  );
});
