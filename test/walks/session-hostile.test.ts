// Pay-per-call against wrong, repeated, stolen and broken requests, on a real chain: the
// catalogue's code, nothing charged that was not delivered, no answer without its payment, and no
// secret in the log.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Credential } from "mppx";
import { WebSocket } from "ws";
import { hostedFixture } from "../fakes/hosted-fixture.ts";
import {
  callOf,
  chainsOfFile,
  rowOf,
  type SessionFixture,
  sessionFixture,
  stockClient,
  until,
} from "./session-fixture.ts";

const chains = await chainsOfFile();

const PRICE = 15n;

/** A stock client whose requests are kept, so that they can be sent again. */
function keptClient(fixture: SessionFixture) {
  const sent: { readonly url: string; readonly init: RequestInit; readonly credential: string }[] =
    [];
  const keep: typeof fetch = async (input, init) => {
    const credential = new Headers(init?.headers).get("authorization");
    if (credential !== null) sent.push({ url: String(input), init: init ?? {}, credential });
    return fetch(input, init);
  };
  return { sent, ...stockClient(fixture.chains, chains.payer, { fetch: keep }) };
}

async function codeOf(response: Response): Promise<string> {
  return JSON.parse(await response.text()).error.data.code;
}

/** Sends a credential as it is, or changed. */
function send(
  fixture: SessionFixture,
  credential: string,
  init: RequestInit = callOf("eth_gasPrice"),
): Promise<Response> {
  return fetch(fixture.url(), {
    ...init,
    headers: { ...(init.headers as object), authorization: credential },
  });
}

/** Changes what a credential says. */
function changed(credential: string, change: (it: ReturnType<typeof parse>) => void): string {
  const it = parse(credential);
  change(it);
  return `Payment ${Buffer.from(JSON.stringify(it)).toString("base64url")}`;
}

// biome-ignore lint/suspicious/noExplicitAny: credentials are taken apart and put together wrongly
function parse(credential: string): any {
  return JSON.parse(Buffer.from(credential.replace(/^Payment /, ""), "base64url").toString());
}

test(
  "the same paid request again gets the same answer and is asked of no provider; the same " +
    "opening again as well",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    let count = 0;
    fixture.upstream.script((_, reply) => reply.result(`"0x${++count}"`));
    const { manager, sent } = keptClient(fixture);
    const first = await (await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1))).text();
    const second = await (await manager.fetch(fixture.url(), callOf("eth_gasPrice", 2))).text();
    for (const [at, text] of [first, second].entries()) {
      const credential = sent[at]?.credential ?? "";
      const again = await send(fixture, credential, callOf("eth_gasPrice", at + 1));
      assert.deepEqual([again.status, await again.text()], [200, text]);
      assert.ok(again.headers.get("payment-receipt") !== null);
    }
    await fixture.restart();
    const late = await send(fixture, sent[1]?.credential ?? "", callOf("eth_gasPrice", 2));
    assert.equal(await late.text(), second);
    assert.equal(fixture.upstream.asked.length, 2);
    // With the voucher of a call another call cannot be had.
    const other = await send(fixture, sent[1]?.credential ?? "", callOf("eth_getLogs", 2));
    assert.deepEqual([other.status, await codeOf(other)], [402, "payment_invalid"]);
    assert.equal((await rowOf(fixture, manager.channelId ?? "")).spent_units, 2n * PRICE);
  },
);

test("a call that no provider answers is not charged; an error that a provider answers is", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const { manager } = stockClient(chains, chains.payer);
  await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
  fixture.upstream.script((_, reply) => reply.reset());
  const failed = await manager.fetch(fixture.url(), callOf("eth_gasPrice", 2));
  assert.ok("error" in JSON.parse(await failed.text()));
  assert.equal(failed.headers.get("x-svc-usd"), "0");
  assert.equal((await rowOf(fixture, manager.channelId ?? "")).spent_units, PRICE);
  fixture.upstream.script((_, reply) =>
    reply.error('{"code":3,"message":"execution reverted","data":"0x"}'),
  );
  const reverted = await manager.fetch(
    fixture.url(),
    callOf("eth_call", 3, [{ to: "0x0000000000000000000000000000000000000001" }, "latest"]),
  );
  assert.equal(JSON.parse(await reverted.text()).error.code, 3);
  assert.equal(reverted.headers.get("x-svc-usd"), "0.000015");
  const here = await manager.fetch(fixture.url(), callOf("eth_chainId", 4));
  assert.deepEqual(
    [JSON.parse(await here.text()).result, here.headers.get("x-svc-usd")],
    ["0x1", "0"],
  );
  assert.equal((await rowOf(fixture, manager.channelId ?? "")).spent_units, 2n * PRICE);
  fixture.upstream.script((_, reply) => reply.result('"0x1"'));
  // What was promised for the call that failed pays for the next one.
  const next = await manager.fetch(fixture.url(), callOf("eth_gasPrice", 5));
  assert.deepEqual(
    [next.status, (await rowOf(fixture, manager.channelId ?? "")).spent_units],
    [200, 3n * PRICE],
  );
  const receipt = await manager.close();
  assert.equal(receipt?.spent, String(3n * PRICE), "what was promised beyond that goes back");
});

test("wrong credentials: each is refused with a fresh challenge, and none is charged", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const { manager, sent } = keptClient(fixture);
  await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
  await manager.fetch(fixture.url(), callOf("eth_gasPrice", 2));
  const good = sent[1]?.credential ?? "";
  const next = changed(good, (it) => {
    it.payload.cumulativeAmount = "45";
  });
  const wrong: Readonly<Record<string, string>> = {
    "a voucher that was signed for less": next,
    "a challenge that is not ours": changed(good, (it) => {
      it.challenge.id = `A${it.challenge.id.slice(1)}`;
    }),
    "a challenge whose price was changed": changed(good, (it) => {
      it.challenge.request = Buffer.from('{"amount":"1"}').toString("base64url");
    }),
    "another chain's channel": changed(good, (it) => {
      it.payload.descriptor.salt = `0x${"1".repeat(64)}`;
    }),
    "no signature": changed(good, (it) => {
      delete it.payload.signature;
    }),
    "no JSON": "Payment e30x",
    nothing: "Payment",
    "a long one": `Payment ${"a".repeat(9_000)}`,
  };
  for (const [name, credential] of Object.entries(wrong)) {
    const response = await send(fixture, credential, callOf("eth_gasPrice", 3));
    assert.deepEqual([response.status, await codeOf(response)], [402, "payment_invalid"], name);
    assert.match(
      response.headers.get("www-authenticate") ?? "",
      /^Payment id=.*intent="session"/,
      name,
    );
    assert.equal(response.headers.get("cache-control"), "no-store");
  }
  const two = await fetch(fixture.url(), {
    ...callOf("eth_gasPrice", 3),
    headers: { authorization: good, "payment-authorization": next },
  });
  assert.deepEqual([two.status, await codeOf(two)], [400, "invalid_request"]);
  const x402 = await fetch(fixture.url(), {
    ...callOf("eth_gasPrice", 3),
    headers: { "payment-signature": Buffer.from('{"x402Version":2}').toString("base64") },
  });
  assert.deepEqual([x402.status, await codeOf(x402)], [402, "payment_invalid"]);
  const bearer = await fetch(fixture.url(), {
    ...callOf("eth_gasPrice", 3),
    headers: { authorization: "Bearer svc_mt_something" },
  });
  assert.deepEqual([bearer.status, await codeOf(bearer)], [402, "payment_required"]);
  assert.equal((await rowOf(fixture, manager.channelId ?? "")).spent_units, 2n * PRICE);
  assert.equal(fixture.upstream.asked.length, 2);
  const log = fixture.service().log();
  for (const { credential } of sent) {
    assert.ok(!log.includes(credential.slice(8, 200)), "a credential is in the log");
    assert.ok(!log.includes(parse(credential).payload.signature), "a voucher is in the log");
  }
});

test("one payer's right signatures that pay for nothing are checked a bounded number of times, too", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const { manager, sent } = keptClient(fixture);
  await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
  const credential = sent[0]?.credential ?? "";
  const statuses = new Set<number>();
  for (let round = 0; round < 1_000 && !statuses.has(429); round++) {
    const wrong = changed(credential, (it) => {
      it.payload.action = "voucher";
    });
    const responses = await Promise.all(
      Array.from({ length: 20 }, () => send(fixture, wrong, callOf("eth_getLogs", 2))),
    );
    for (const it of responses) {
      statuses.add(it.status);
      await it.text();
    }
  }
  assert.deepEqual([...statuses], [402, 429]);
});

test("a client that keeps sending wrong payments is told to wait", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const statuses: number[] = [];
  for (let tries = 0; tries < 80; tries++)
    statuses.push((await send(fixture, "Payment e30")).status);
  assert.ok(statuses.slice(0, 20).every((it) => it === 402) && statuses.at(-1) === 429);
  const response = await send(fixture, "Payment e30");
  assert.ok(Number(response.headers.get("retry-after")) > 0);
});

test(
  "batches are paid for by one voucher: only what was delivered is charged; notifications and " +
    "empty requests too are what they should be",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    fixture.upstream.script((asked, reply) =>
      asked.method === "eth_call" ? reply.reset() : reply.result('"0x7"'),
    );
    const { manager } = stockClient(chains, chains.payer);
    const body = [
      { jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] },
      { jsonrpc: "2.0", id: 2, method: "eth_call", params: [{}, "latest"] },
      { jsonrpc: "2.0", id: 3, method: "eth_chainId", params: [] },
      { jsonrpc: "2.0", id: 4 },
      { jsonrpc: "2.0", method: "eth_getLogs", params: [{}] },
    ];
    const response = await manager.fetch(fixture.url(), {
      ...callOf(""),
      body: JSON.stringify(body),
    });
    const answers: { id: number; result?: string }[] = JSON.parse(await response.text());
    assert.deepEqual(
      answers.map((it) => [it.id, it.result ?? "error"]),
      [
        [1, "0x7"],
        [2, "error"],
        [3, "0x1"],
        [4, "error"],
      ],
    );
    assert.equal(
      response.headers.get("x-svc-usd"),
      "0.00009",
      "a gas price and the logs of the notification",
    );
    assert.equal(response.headers.get("x-svc-cu"), String(3 + 3 + 1 + 15));
    const silent = await manager.fetch(fixture.url(), {
      ...callOf(""),
      body: '{"jsonrpc":"2.0","method":"eth_gasPrice"}',
    });
    assert.deepEqual([silent.status, await silent.text()], [204, ""]);
    assert.equal((await rowOf(fixture, manager.channelId ?? "")).spent_units, 105n);
    for (const wrong of ["[]", "{", '{"jsonrpc":"2.0"}', '[{"jsonrpc":"2.0"}]']) {
      const refused = await fetch(fixture.url(), { ...callOf(""), body: wrong });
      assert.equal(refused.status, 400, wrong);
    }
  },
);

test("evidence, provider pins and unknown places are told as everywhere", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const { manager } = stockClient(chains, chains.payer);
  const response = await manager.fetch(
    `${fixture.url()}?include_meta=body`,
    callOf("eth_gasPrice"),
  );
  const { result, svc_meta } = JSON.parse(await response.text());
  assert.deepEqual(
    [result, svc_meta.strategy, svc_meta.selected_provider.id],
    ["0x1", "load-balanced", "p1"],
  );
  const base = fixture.service().url;
  const statusOf = async (path: string): Promise<readonly [number, string]> => {
    const it = await fetch(base + path, callOf("eth_gasPrice"));
    return [it.status, await codeOf(it)];
  };
  assert.deepEqual(await statusOf("/rpc/session/load-balanced/nowhere"), [400, "unknown_chain"]);
  assert.deepEqual(await statusOf("/rpc/session/load-balanced/ethereum?provider=none"), [
    400,
    "invalid_field",
  ]);
  assert.equal((await fetch(fixture.url())).status, 405);
  const made = await fixture.service().post("/api/v1/agent/keys", {});
  assert.equal(made.status, 201, made.text);
  assert.deepEqual(await statusOf(`/rpc/k/${made.json.key}/session/load-balanced/ethereum`), [
    400,
    "invalid_request",
  ]);
  const socket = new WebSocket(
    `${base.replace("http", "ws")}/ws/rpc/session/load-balanced/ethereum`,
  );
  const status = await new Promise((resolve) =>
    socket.on("unexpected-response", (_, it) => resolve(it.statusCode)).on("error", () => {}),
  );
  assert.equal(status, 404);
  const subscribe = JSON.parse(
    await (await manager.fetch(fixture.url(), callOf("eth_subscribe", 1, ["newHeads"]))).text(),
  );
  assert.equal(subscribe.error.data.websocket_url, "/ws/rpc/load-balanced/ethereum");
});

test(
  "what is refused in any case, and what the configuration answers, is told to one who has not " +
    "paid: no payment is asked for it",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    const unpaid = async (body: unknown) => {
      const response = await fetch(fixture.url(), { ...callOf(""), body: JSON.stringify(body) });
      return {
        status: response.status,
        usd: response.headers.get("x-svc-usd"),
        json: JSON.parse(await response.text()),
      };
    };
    for (const [method, code] of [
      ["eth_sendTransaction", "method_blocked"],
      ["eth_sign", "method_blocked"],
      ["personal_sign", "method_blocked"],
      ["eth_subscribe", "websocket_only"],
      ["eth_unsubscribe", "websocket_only"],
    ] as const) {
      const { status, usd, json } = await unpaid({ jsonrpc: "2.0", id: 5, method, params: [] });
      assert.deepEqual(
        [status, usd, json.id, json.error.code, json.error.data.code],
        [200, "0", 5, -32_601, code],
      );
    }
    assert.equal(
      (await unpaid({ jsonrpc: "2.0", id: 6, method: "eth_chainId" })).json.result,
      "0x1",
    );
    const batch = await unpaid([
      { jsonrpc: "2.0", id: 1, method: "eth_sign" },
      { id: 2 },
      { jsonrpc: "2.0", id: 3, method: "net_version" },
    ]);
    assert.deepEqual(
      [
        batch.status,
        batch.json.map((it: { id: number; error?: { code: number } }) => [
          it.id,
          it.error?.code ?? "result",
        ]),
      ],
      [
        200,
        [
          [1, -32_601],
          [2, -32_600],
          [3, "result"],
        ],
      ],
    );
    // One call among them that a provider is asked for is paid for.
    assert.equal(
      (
        await unpaid([
          { jsonrpc: "2.0", id: 1, method: "eth_sign" },
          { jsonrpc: "2.0", id: 2, method: "eth_gasPrice" },
        ])
      ).status,
      402,
    );
    assert.equal(fixture.upstream.asked.length, 0);
  },
);

test(
  "a payer who leaves before the answer pays for what a provider was asked, and may make the " +
    "same request once more",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    const { manager, sent } = keptClient(fixture);
    await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
    const spent = async (): Promise<bigint> =>
      (await rowOf(fixture, manager.channelId ?? "")).spent_units;
    const write = callOf("eth_sendRawTransaction", 2, ["0x02"]);
    fixture.upstream.script(() => {});
    const leaving = new AbortController();
    const left = manager
      .fetch(fixture.url(), { ...write, signal: leaving.signal })
      .catch(() => "left");
    await until(() => fixture.upstream.asked.length === 2, "the provider is asked");
    assert.equal(await spent(), PRICE, "nothing is charged while the call is under way");
    leaving.abort();
    assert.equal(await left, "left");
    await until(async () => (await spent()) === PRICE + 25n, "it is charged");
    fixture.upstream.script((_, reply) => reply.result('"0xab"'));
    const credential = sent.at(-1)?.credential ?? "";
    const again = await send(fixture, credential, write);
    assert.deepEqual(
      [again.status, again.headers.get("x-svc-usd"), JSON.parse(await again.text()).result],
      [200, "0", "0xab"],
    );
    assert.equal(await codeOf(await send(fixture, credential, write)), "payment_conflict");
    assert.deepEqual([await spent(), fixture.upstream.asked.length], [PRICE + 25n, 3]);
  },
);

test("without a session rail the route says that it is not there", async (t) => {
  const { service } = await hostedFixture(t);
  const { status, json } = await service.post("/rpc/session/load-balanced/ethereum", {
    jsonrpc: "2.0",
    id: 1,
    method: "eth_gasPrice",
  });
  assert.deepEqual([status, json.error.data.code], [404, "not_found"]);
});

test("after a close the channel pays for nothing, and a second close gets the same answer", async (t) => {
  const fixture = await sessionFixture(t, chains);
  const { manager, sent } = keptClient(fixture);
  await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
  const receipt = await manager.close();
  const again = await send(fixture, sent.at(-1)?.credential ?? "", { method: "POST" });
  assert.equal(again.status, 204);
  const shown = JSON.parse(
    Buffer.from(again.headers.get("payment-receipt") ?? "", "base64url").toString(),
  );
  assert.deepEqual([shown.txHash, shown.spent], [receipt?.txHash, String(PRICE)]);
  const late = await send(
    fixture,
    changed(sent[0]?.credential ?? "", () => {}),
    callOf("eth_gasPrice", 9),
  );
  assert.deepEqual([late.status, await codeOf(late)], [402, "payment_invalid"]);
});

test(
  "a chain that cannot be reached: an opening is refused without a trace or goes on when it " +
    "can be; it is never asked for again",
  async (t) => {
    const proxy = await chainProxy(t, chains.tempo.rpcUrl);
    const fixture = await sessionFixture(t, chains, { rail: { rpcUrl: proxy.url }, waitMs: 1_500 });
    const { sent, manager } = keptClient(fixture);
    proxy.refuse(() => true);
    const dead = await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
    assert.deepEqual([dead.status, await codeOf(dead)], [503, "unavailable"]);
    assert.ok(dead.headers.get("retry-after") !== null);
    assert.deepEqual(
      await fixture.peek((store) => store.db.selectFrom("session_channel").select("id").execute()),
      [],
    );
    // It can be asked, and what is sent gets lost on the way back.
    proxy.refuse((method) => method === "eth_getTransactionReceipt");
    const lost = await manager.fetch(fixture.url(), callOf("eth_gasPrice", 1));
    assert.deepEqual([lost.status, await codeOf(lost)], [503, "payment_pending"]);
    const credential = sent.at(-1)?.credential ?? "";
    assert.equal((await send(fixture, credential, callOf("eth_gasPrice", 1))).status, 503);
    proxy.refuse(() => false);
    await until(
      async () => (await send(fixture, credential, callOf("eth_gasPrice", 1))).status === 200,
      "it is served",
    );
    assert.equal((await rowOf(fixture, parse(credential).payload.channelId)).spent_units, PRICE);
    assert.ok(!fixture.service().log().includes(proxy.url), "the URL of the node is in the log");
  },
);

test(
  "an opening for another recipient, with another voucher, or that was made up is refused, and " +
    "nothing is sent",
  async (t) => {
    const fixture = await sessionFixture(t, chains);
    const { manager, sent } = keptClient(fixture);
    // Signed for this service, kept from it, changed, and shown.
    const opening = await new Promise<string>((resolve) => {
      const stop: typeof fetch = async (input, init) => {
        const credential = new Headers(init?.headers).get("authorization");
        if (credential !== null) resolve(credential);
        return credential === null ? fetch(input, init) : new Response("", { status: 503 });
      };
      void stockClient(chains, chains.payer, { fetch: stop }).manager.fetch(
        fixture.url(),
        callOf("eth_gasPrice"),
      );
    });
    const wrong: Readonly<Record<string, string>> = {
      "a transaction without its end": changed(opening, (it) => {
        it.payload.transaction = it.payload.transaction.slice(0, -10);
      }),
      "another transaction than the descriptor is of": changed(opening, (it) => {
        it.payload.descriptor.expiringNonceHash = `0x${"2".repeat(64)}`;
      }),
      "another recipient": changed(opening, (it) => {
        it.payload.descriptor.payee = chains.payer.address;
      }),
      "a voucher for more than it says": changed(opening, (it) => {
        it.payload.cumulativeAmount = "1000";
      }),
      "a call that the voucher does not pay for": opening,
    };
    for (const [name, credential] of Object.entries(wrong)) {
      const response = await send(
        fixture,
        credential,
        callOf(name.startsWith("a call") ? "debug_traceCall" : "eth_gasPrice"),
      );
      assert.deepEqual([response.status, await codeOf(response)], [402, "payment_invalid"], name);
    }
    assert.deepEqual(
      await fixture.peek((store) => store.db.selectFrom("session_channel").select("id").execute()),
      [],
    );
    assert.equal((await send(fixture, opening)).status, 200, "as it was signed it is right");
    assert.equal(sent.length, 0);
    assert.equal(manager.opened, false);
    assert.equal(Credential.deserialize(opening).challenge.intent, "session");
  },
);

/** A node that can be made to lose answers. */
async function chainProxy(t: { after(run: () => Promise<void>): void }, target: string) {
  let refuses: (method: string) => boolean = () => false;
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      if (refuses(JSON.parse(body).method)) return void request.socket.destroy();
      fetch(target, { method: "POST", headers: { "content-type": "application/json" }, body }).then(
        async (it) =>
          void response
            .writeHead(it.status, { "content-type": "application/json" })
            .end(await it.text()),
        () => void request.socket.destroy(),
      );
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-path`,
    refuse: (next: (method: string) => boolean): void => {
      refuses = next;
    },
  };
}
