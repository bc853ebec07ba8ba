// `svc pay` against a scripted server: it signs once, only what it was allowed, with the wallet
// that was meant, and repeats what it has signed; no key is told.
import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it, type TestContext } from "node:test";
import { Challenge, Credential, Receipt } from "mppx";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { z } from "zod";
import { pay } from "../../../src/devnet/payments/pay.ts";
import { PAYER, RECIPIENT } from "../../../src/devnet/payments/wallets.ts";
import { type PaymentChains, startPaymentChains } from "../../fakes/payment-chains.ts";

const Authorization = z.object({
  from: z.string(),
  to: z.string(),
  value: z.string(),
  validAfter: z.string(),
  validBefore: z.string(),
  nonce: z.string(),
  signature: z.string(),
});
const TYPES = [
  { type: "address", name: "from" },
  { type: "address", name: "to" },
  { type: "uint256", name: "value" },
  { type: "uint256", name: "validAfter" },
  { type: "uint256", name: "validBefore" },
  { type: "bytes32", name: "nonce" },
];

describe("svc pay", () => {
  let chains: PaymentChains;
  before(async () => {
    chains = await startPaymentChains();
  });
  after(() => chains.close());

  const offered = (
    change: Record<string, unknown> = {},
    details: Record<string, unknown> = {},
  ): string => {
    const methodDetails = {
      chainId: 31_337,
      credentialTypes: ["authorization"],
      decimals: 6,
      ...details,
    };
    const request = {
      amount: "100000",
      currency: chains.evm.token.address,
      recipient: RECIPIENT.address,
      methodDetails,
      ...change,
    };
    return Challenge.serialize(
      Challenge.from({ id: "offer-1", realm: "test", method: "evm", intent: "charge", request }),
    );
  };
  const receipt = Receipt.serialize({
    method: "evm",
    reference: "0xreference",
    status: "success",
    timestamp: "2026-01-01T00:00:00Z",
  });

  /**
   * A server that asks for payment, and then does what the script says for each payment that it is
   * shown.
   */
  async function shop(
    t: TestContext,
    challenge: string,
    script: readonly ((response: ServerResponse) => void)[],
  ) {
    const shown: string[] = [];
    const bodies: string[] = [];
    const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
      let body = "";
      for await (const chunk of request) body += chunk;
      bodies.push(`${request.method} ${body}`);
      const given = request.headers.authorization;
      if (given === undefined) {
        response
          .writeHead(402, challenge === "" ? {} : { "www-authenticate": challenge })
          .end("{}");
        return;
      }
      shown.push(given);
      script[Math.min(shown.length, script.length) - 1]?.(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/thing`;
    const said: string[] = [];
    const printed: string[] = [];
    const buy = (change: Partial<Parameters<typeof pay>[0]> = {}): Promise<boolean> =>
      pay({
        url,
        method: "POST",
        data: '{"a":1}',
        key: null,
        rpcUrl: null,
        maxUsd: "1",
        pause: async () => {},
        print: (it) => printed.push(it),
        say: (it) => said.push(it),
        ...change,
      });
    return { buy, shown, bodies, said, printed };
  }

  const ok = (response: ServerResponse): void =>
    void response.writeHead(200, { "payment-receipt": receipt }).end('{"bought":true}');

  it(
    "says what it pays, signs it for the token of the local chain, sends the same request, and " +
      "tells the receipt",
    async (t) => {
      const { buy, shown, bodies, said, printed } = await shop(t, offered(), [ok]);
      assert.equal(await buy(), true);
      assert.deepEqual(said, [
        `paying 0.1 "Development Dollar" to ${RECIPIENT.address} on chain 31337`,
        'paid: receipt "0xreference" of 2026-01-01T00:00:00Z',
      ]);
      assert.deepEqual([printed, bodies], [['{"bought":true}'], ['POST {"a":1}', 'POST {"a":1}']]);
      const { payload, source } = Credential.deserialize(shown[0] ?? "");
      const it = Authorization.parse(payload);
      assert.equal(source, `did:pkh:eip155:31337:${PAYER.address}`);
      const { verifyTypedData } = await import("viem");
      const message = {
        ...it,
        value: BigInt(it.value),
        validAfter: BigInt(it.validAfter),
        validBefore: BigInt(it.validBefore),
      };
      const domain = {
        name: "Development Dollar",
        version: "1",
        chainId: 31_337,
        verifyingContract: chains.evm.token.address,
      };
      const signed = {
        address: PAYER.address,
        domain,
        types: { TransferWithAuthorization: TYPES },
        primaryType: "TransferWithAuthorization",
        message,
      };
      assert.equal(await verifyTypedData({ ...signed, signature: it.signature } as never), true);
    },
  );

  it("repeats the very same payment while it is under way and when the answer is lost", async (t) => {
    const pending = (response: ServerResponse): void =>
      void response.writeHead(503, { "retry-after": "1" }).end("{}");
    const lost = (response: ServerResponse): void => void response.destroy();
    const { buy, shown, said } = await shop(t, offered(), [pending, lost, pending, ok]);
    assert.equal(await buy(), true);
    assert.equal(shown.length, 4);
    assert.equal(new Set(shown).size, 1);
    assert.match(said.at(-1) ?? "", /^paid: /);
  });

  it(
    "never signs a second time: a 402 after the payment ends it, and so do a server that is " +
      "silent and one that stays busy",
    async (t) => {
      const again = await shop(t, offered(), [
        (response) => void response.writeHead(402, { "www-authenticate": offered() }).end("no"),
      ]);
      assert.equal(await again.buy(), false);
      assert.deepEqual([again.shown.length, again.printed], [1, ["no"]]);
      for (const ending of [
        (response: ServerResponse) => void response.destroy(),
        (response: ServerResponse) => void response.writeHead(503).end(),
      ]) {
        const { buy, shown } = await shop(t, offered(), [ending]);
        assert.equal(await buy(), false);
        assert.ok(shown.length > 1 && shown.length <= 10 && new Set(shown).size === 1);
      }
    },
  );

  it("signs nothing above the bound, and nothing that it cannot read", async (t) => {
    const cases: readonly (readonly [challenge: string, why: RegExp])[] = [
      [offered({ amount: "1000001" }), /more than 1: allow it with --max-usd/],
      [offered({ amount: "1e30" }), /no offer by MPP evm/],
      [offered({ recipient: "0x12" }), /no offer by MPP evm/],
      [
        offered({}, { splits: [{ amount: "1", recipient: RECIPIENT.address }] }),
        /no offer by MPP evm/,
      ],
      [offered({}, { credentialTypes: ["hash"] }), /no offer by MPP evm/],
      [
        offered().replace('method="evm"', 'method="tempo"'),
        /no offer by MPP evm: tempo\/charge. mppx pays other ones/,
      ],
      ["Payment nonsense", /no offer by MPP evm: none at all/],
      ["", /no offer by MPP evm: none at all/],
    ];
    for (const [challenge, why] of cases) {
      const { buy, shown, said } = await shop(t, challenge, [ok]);
      assert.equal(await buy(), false);
      assert.deepEqual(shown, []);
      assert.match(said.at(-1) ?? "", why);
    }
  });

  it("a server that says the token has more decimals than it has does not get more", async (t) => {
    const { buy, shown } = await shop(t, offered({ amount: "1000000000" }, { decimals: 18 }), [ok]);
    assert.equal(await buy(), false);
    assert.deepEqual(shown, []);
  });

  it("on any other chain it needs a node and a key of its own, and the node has to be on that chain", async (t) => {
    const other = offered({}, { chainId: 8453 });
    const { rpcUrl } = chains.evm;
    const first = await shop(t, other, [ok]);
    assert.equal(await first.buy(), false);
    assert.match(first.said.at(-1) ?? "", /name a node of chain 8453 with --rpc/);
    const second = await shop(t, other, [ok]);
    assert.equal(await second.buy({ rpcUrl }), false);
    assert.match(
      second.said.at(-1) ?? "",
      /--rpc is on chain 31337, and the offer is for chain 8453/,
    );
    const third = await shop(t, offered({ currency: RECIPIENT.address }), [ok]);
    assert.equal(await third.buy({ rpcUrl }), false);
    assert.match(third.said.at(-1) ?? "", /does not tell name, version and decimals/);
    assert.deepEqual([first.shown, second.shown, third.shown], [[], [], []]);
    const key = generatePrivateKey();
    const fourth = await shop(t, offered(), [ok]);
    assert.equal(await fourth.buy({ rpcUrl, key }), true);
    assert.equal(
      Credential.deserialize(fourth.shown[0] ?? "").source,
      `did:pkh:eip155:31337:${privateKeyToAccount(key).address}`,
    );
  });

  it("a key that no wallet can have is refused without being told", async (t) => {
    const { buy, shown, said } = await shop(t, offered(), [ok]);
    assert.equal(await buy({ key: `0x${"0".repeat(64)}` }), false);
    assert.deepEqual([shown, said.at(-1)], [[], "the wallet's key is no private key"]);
  });

  it("tells no key, no signature and no node's address", async (t) => {
    const key = generatePrivateKey();
    const { buy, shown, said, printed } = await shop(t, offered(), [
      (response) => void response.writeHead(409).end('{"error":"no"}'),
    ]);
    assert.equal(await buy({ key, rpcUrl: chains.evm.rpcUrl }), false);
    const dead = await shop(t, offered(), [ok]);
    assert.equal(await dead.buy({ key, rpcUrl: "http://127.0.0.1:9/secret-of-the-node" }), false);
    const told = [...said, ...printed, ...dead.said, ...dead.printed].join("\n");
    const { signature } = Authorization.parse(Credential.deserialize(shown[0] ?? "").payload);
    for (const secret of [key.slice(2), signature.slice(2), "secret-of-the-node", shown[0] ?? "?"])
      assert.ok(!told.includes(secret));
  });
});
