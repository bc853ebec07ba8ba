// Asking a payment chain's node: every wait and every answer is bounded, and trouble is told apart
// from what the node says, without its address.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { PaymentChain, parseQuantity } from "../../../src/payments/rails/chain.ts";
import { simulatedWorld } from "../../fakes/runtime.ts";

describe("a payment chain's node", () => {
  let answer: string | null = "";
  let status = 200;
  let location: string | null = null;
  const seen: { authorization?: string | undefined; body: string }[] = [];
  let url = "";
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request.setEncoding("utf8")) body += chunk;
    seen.push({ authorization: request.headers.authorization, body });
    const { id } = JSON.parse(body);
    if (answer !== null)
      response
        .writeHead(status, location === null ? {} : { location })
        .end(answer.replace("OWN_ID", id));
    else hanging();
  });
  // After seconds in which this process did nothing else it would close the connection on which the
  // next question is sent.
  server.keepAliveTimeout = 0;
  let hanging = (): void => {};
  const runtime = simulatedWorld(1);

  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/secret-path`;
  });
  after(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  function chain(rpcUrl = url): PaymentChain {
    return new PaymentChain({
      rpcUrl,
      chainId: 1,
      runtime,
      timeoutMs: 5_000,
      maxAnswerBytes: 1_000,
    });
  }

  function says(text: string | null, code = 200): void {
    answer = text;
    status = code;
    location = null;
  }

  function isTrouble(reason: RegExp): (error: unknown) => boolean {
    return (error) => {
      assert.ok(error instanceof Error && error.name === "ChainFailure");
      assert.match(error.message, reason);
      assert.doesNotMatch(`${error.stack} ${error.cause}`, /secret|127\.0\.0\.1/);
      return true;
    };
  }

  test("a result is read by its caller; one that cannot be read is an error of the chain", async () => {
    says('{"jsonrpc":"2.0","id":OWN_ID,"result":"0x10"}');
    assert.deepEqual(await chain().call("eth_blockNumber", [], parseQuantity), {
      kind: "result",
      value: 16n,
    });
    const { id, ...asked } = JSON.parse(seen.at(-1)?.body ?? "");
    assert.deepEqual(asked, { jsonrpc: "2.0", method: "eth_blockNumber", params: [] });
    assert.match(String(id), /^\d{16}$/);
    for (const result of ['"x"', "5", "null", '"0x"', "{}"]) {
      says(`{"jsonrpc":"2.0","id":OWN_ID,"error":null,"result":${result}}`);
      await assert.rejects(
        chain().call("eth_blockNumber", [], parseQuantity),
        isTrouble(/something else than it should/),
      );
    }
  });

  test("what a node says instead of a result is a value, and tells whether it has tried the call", async () => {
    says(
      '{"jsonrpc":"2.0","id":OWN_ID,"error":{"code":3,"message":"execution reverted: ' +
        'x","data":"0x12345678"}}',
    );
    const reverted = {
      kind: "node_error",
      code: 3,
      message: "execution reverted: x",
      data: "0x12345678",
      reverted: true,
    };
    assert.deepEqual(await chain().call("eth_call", [], (it) => it), reverted);
    says('{"jsonrpc":"2.0","id":OWN_ID,"error":{"code":-32000,"message":"header not found"}}');
    const trouble = {
      kind: "node_error",
      code: -32_000,
      message: "header not found",
      data: null,
      reverted: false,
    };
    assert.deepEqual(await chain().call("eth_call", [], (it) => it), trouble);
    await assert.rejects(
      chain().get("eth_call", [], (it) => it),
      isTrouble(/answered eth_call with error -32000/),
    );
  });

  test(
    "an answer under another id, or under none, is trouble, whatever it says: it may be that to " +
      "another question",
    async () => {
      for (const id of ["1", "null", '"OWN_ID"', "1234567890123456"]) {
        for (const said of [
          '"result":"0x10"',
          '"error":{"code":3,"message":"execution reverted"}',
        ]) {
          says(`{"jsonrpc":"2.0","id":${id},${said}}`);
          await assert.rejects(
            chain().call("eth_blockNumber", [], parseQuantity),
            isTrouble(/answered eth_blockNumber under another id/),
          );
        }
      }
      says('{"jsonrpc":"2.0","result":"0x10"}');
      await assert.rejects(
        chain().call("eth_blockNumber", [], parseQuantity),
        isTrouble(/under another id/),
      );
    },
  );

  test(
    "no answer in time, a closed door, another status, too much of it, or something else is " +
      "trouble",
    async () => {
      says(null);
      const asking = chain().call("eth_call", [], (it) => it);
      await new Promise<void>((resolve) => {
        hanging = resolve;
      });
      runtime.advance(5_000);
      await assert.rejects(asking, isTrouble(/did not answer eth_call within 5000 ms/));
      assert.equal(runtime.pendingTimers(), 0);
      const ask = () => chain().call("eth_call", [], (it) => it);
      says('{"jsonrpc":"2.0","id":OWN_ID,"result":1}', 429);
      await assert.rejects(ask(), isTrouble(/HTTP status 429/));
      says(`{"jsonrpc":"2.0","id":OWN_ID,"result":"${"1".repeat(1_000)}"}`);
      await assert.rejects(
        chain().get("eth_call", [], (it) => it),
        isTrouble(/more bytes than are read/),
      );
      for (const text of ["", "<html>", "[]", "{}", "null", '{"error":"x"}', '{"result":']) {
        says(text);
        await assert.rejects(ask(), isTrouble(/something else than JSON-RPC/));
      }
      says("", 302);
      location = "http://127.0.0.1:1/";
      await assert.rejects(ask(), isTrouble(/was not reached/));
      await assert.rejects(
        chain("http://127.0.0.1:1/secret").call("eth_call", [], (it) => it),
        isTrouble(/was not reached/),
      );
      assert.equal(runtime.pendingTimers(), 0);
    },
  );

  test("a login in the address goes where a node looks for it", async () => {
    says('{"jsonrpc":"2.0","id":OWN_ID,"result":1}');
    await chain(url.replace("//", "//secret-name:secret%20word@")).call("eth_call", [], (it) => it);
    assert.equal(
      seen.at(-1)?.authorization,
      `Basic ${Buffer.from("secret-name:secret word").toString("base64")}`,
    );
  });
});
