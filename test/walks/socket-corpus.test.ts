// Every recorded provider error that is a JSON-RPC error, once through real WebSockets: provider
// `a` answers with it on its socket, `b` is well. What the caller gets and what `a` is held to are
// what they are over HTTP.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { configText, type Service, startService } from "../fakes/service.ts";
import { metaOf, until, walked } from "../fakes/service-fixture.ts";
import { type SocketUpstream, socketUpstream } from "../fakes/socket-upstream.ts";
import {
  CORPUS,
  checkAnswer,
  checkHealth,
  errorText,
  goesOn,
  groupsOf,
  HASH,
  methodNameOf,
  paramsOf,
  type Row,
  slugOf,
  soundResult,
  verdictOf,
} from "./corpus.ts";

const ROWS = CORPUS.filter((row) => row.code !== null && row.method !== "eth_subscribe");
const PROBES: ReadonlySet<string> = new Set(["eth_chainId", "eth_blockNumber"]);

function answerAs(row: Row, method: string): string | null {
  return method === "eth_getTransactionByHash" && row.elsewhere === "verify"
    ? `{"hash":"${HASH}"}`
    : null;
}

it("is all of the corpus that a socket can carry", () =>
  assert.ok(ROWS.length > 145, `${ROWS.length}`));

for (const { name, rows } of groupsOf(ROWS))
  describe(`provider errors served over its socket by the first provider, ${name}`, () => {
    let failing: SocketUpstream;
    let sound: SocketUpstream;
    let service: Service;
    /** Method and path of everything but probes, by provider. */
    const asked = { failing: new Map<string, number>(), sound: new Map<string, number>() };

    before(async () => {
      const count = (where: Map<string, number>, key: string): void =>
        void where.set(key, (where.get(key) ?? 0) + 1);
      failing = await socketUpstream(({ method }, reply) => {
        const { path } = reply.peer;
        const row = rows.find((it) => path === `/${it.id}`);
        if (PROBES.has(method) || row === undefined) return reply.usual();
        count(asked.failing, `${method} ${path}`);
        const result = answerAs(row, method);
        if (result === null) reply.error(errorText(row));
        else reply.result(result);
      });
      sound = await socketUpstream(({ method }, reply) => {
        if (PROBES.has(method)) return reply.usual();
        count(asked.sound, `${method} ${reply.peer.path}`);
        reply.result(soundResult(method));
      });
      const profileOf = (row: Row) => {
        const providers = [
          { id: "a", ws_url: `${failing.url}/${row.id}`, priority: 1, archival: true },
          { id: "b", ws_url: `${sound.url}/${row.id}`, priority: 2, archival: true },
        ];
        return {
          chains: {
            ethereum: {
              monitoring: { socket_heads: false, probe_interval_ms: 3_600_000 },
              providers,
            },
          },
        };
      };
      service = await startService(
        configText([], {
          profiles: Object.fromEntries(rows.map((row) => [slugOf(row), profileOf(row)])),
        }),
      );
      // A probe that succeeds ends a cordon: the first round has to be over, and there is no other.
      await until(
        "the first probes",
        () =>
          failing.count("eth_blockNumber") >= rows.length &&
          sound.count("eth_blockNumber") >= rows.length,
      );
    });
    after(() => Promise.all([service.close(), failing.close(), sound.close()]));

    for (const row of rows) {
      it(`row ${row.id} ${row.class}: ${row.message.slice(0, 50)}`, async () => {
        const method = methodNameOf(row);
        const path = `/rpc/profile/${slugOf(row)}/priority/1?include_meta=headers`;
        const sinceMs = performance.now();
        const answer = await service.post(path, {
          jsonrpc: "2.0",
          id: 77,
          method,
          params: paramsOf(method),
        });
        const verdict = verdictOf(row, "ws");
        assert.deepEqual(
          [metaOf(answer).attempts[0]?.category, metaOf(answer)["transport"]],
          [verdict.category, "http"],
        );
        checkAnswer(row, verdict, answer.text);
        if (goesOn(verdict)) assert.equal(walked(answer), `a:${verdict.category} b:ok`);
        const key = `${method} /${row.id}`;
        assert.deepEqual(
          [asked.failing.get(key), asked.sound.get(key) ?? 0],
          [1, goesOn(verdict) ? 1 : 0],
        );
        await checkHealth(row, verdict, service, sinceMs);
      });
    }
  });
