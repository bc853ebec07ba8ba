// Every recorded provider error once through real sockets: provider `a` answers with it, `b` is
// well. What the caller gets and what `a` is held to follow from the recorded columns and from the
// classifier's decision.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { configText, type Service, startService } from "../fakes/service.ts";
import { metaOf, until, walked } from "../fakes/service-fixture.ts";
import {
  type Asked,
  type Replier,
  type ScriptedUpstream,
  scriptedUpstream,
} from "../fakes/upstream.ts";
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

/** Subscriptions have no HTTP form, and a GOAWAY has none over HTTP/1.1: other walks meet those. */
const ROWS = CORPUS.filter(
  (row) => row.method !== "eth_subscribe" && !row.message.includes("ENHANCE_YOUR_CALM"),
);

function answerAs(row: Row, { method }: Asked, reply: Replier): void {
  if (method === "eth_getTransactionByHash" && row.elsewhere === "verify")
    reply.result(`{"hash":"${HASH}"}`);
  else if (row.http === 0) reply.reset();
  else if (row.code === null) reply.body(row.message, row.http);
  else reply.error(errorText(row), row.http);
}

it("every recorded provider error is served but what HTTP cannot carry", () =>
  assert.ok(ROWS.length >= CORPUS.length - 12 && ROWS.length > 140, `${ROWS.length}`));

for (const { name, rows } of groupsOf(ROWS))
  describe(`provider errors served over HTTP by the first provider, ${name}`, () => {
    let failing: ScriptedUpstream;
    let sound: ScriptedUpstream;
    let service: Service;

    before(async () => {
      failing = await scriptedUpstream((asked, reply) => {
        const row = rows.find((it) => asked.path === `/${it.id}`);
        if (row !== undefined) answerAs(row, asked, reply);
      });
      sound = await scriptedUpstream(({ method }, reply) => reply.result(soundResult(method)));
      const profileOf = (row: Row) => {
        const providers = [
          { id: "a", url: `${failing.url}/${row.id}`, priority: 1, archival: true },
          { id: "b", url: `${sound.url}/${row.id}`, priority: 2, archival: true },
        ];
        return {
          chains: { ethereum: { monitoring: { probe_interval_ms: 3_600_000 }, providers } },
        };
      };
      service = await startService(
        configText([], {
          profiles: Object.fromEntries(rows.map((row) => [slugOf(row), profileOf(row)])),
        }),
      );
      // A probe that succeeds ends a cordon: the first round has to be over, and there is no other.
      await until("the first probes", () => failing.probes() >= 2 * rows.length);
    });
    after(() => Promise.all([service.close(), failing.close(), sound.close()]));

    for (const row of rows) {
      it(`row ${row.id} ${row.class}: ${row.message.slice(0, 50)}`, async () => {
        const method = methodNameOf(row);
        const path = `/rpc/profile/${slugOf(row)}/priority/1?include_meta=headers`;
        const askedAt = performance.now();
        const answer = await service.post(path, {
          jsonrpc: "2.0",
          id: 77,
          method,
          params: paramsOf(method),
        });
        const verdict = verdictOf(row, "http");
        assert.equal(answer.status, 200);
        assert.equal(metaOf(answer).attempts[0]?.category, verdict.category);
        checkAnswer(row, verdict, answer.text);
        if (goesOn(verdict)) assert.equal(walked(answer), `a:${verdict.category} b:ok`);
        const askedOf = (upstream: ScriptedUpstream): number =>
          upstream.asked.filter((it) => it.path === `/${row.id}` && it.method === method).length;
        assert.deepEqual([askedOf(failing), askedOf(sound)], [1, goesOn(verdict) ? 1 : 0]);
        await checkHealth(row, verdict, service, askedAt);
      });
    }

    it("and no provider's circuit was opened by one error", async () => {
      const { json } = await service.get("/api/metrics/1");
      for (const { profile, providers } of json.profiles)
        assert.equal(providers[0].transports[0].circuit_breaker_state, "closed", profile);
    });
  });
