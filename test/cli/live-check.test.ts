// `svc check-config --live`: each provider of a file is told as it is, and one that is not there,
// of another chain or behind makes the check fail.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkLive } from "../../src/cli/probe/live-check.ts";
import { configOf, configText } from "../fakes/service.ts";
import { scriptedUpstream } from "../fakes/upstream.ts";

test("good providers pass; others are named with the reason", async (t) => {
  const nodes = await Promise.all([1, 2, 3, 4].map(() => scriptedUpstream()));
  t.after(() => Promise.all(nodes.map((node) => node.close())));
  const [, , other, behind] = nodes;
  other?.probesSay({ chainId: 10, height: 100 });
  behind?.probesSay({ chainId: 1, height: 40 });
  const key = "f00dfeedf00dfeedf00dfeed";
  const providers = nodes.map(({ url }, at) => ({ id: `p${at}`, url: `${url}/v2/${key}` }));
  const good = await checkLive(configOf(configText(providers.slice(0, 2))));
  assert.deepEqual(good, {
    lines: ["ok      team/ethereum p0: block 100", "ok      team/ethereum p1: block 100"],
    isGood: true,
  });
  const gone = { id: "gone", url: `http://127.0.0.1:9/v2/${key}` };
  const bad = await checkLive(configOf(configText([...providers, gone])));
  assert.equal(bad.isGood, false);
  const text = bad.lines.join("\n");
  assert.match(text, /^ok {6}team\/ethereum p0/);
  assert.match(
    text,
    /failed {2}team\/ethereum p2: wrong_chain over http: chain id 10 instead of 1/,
  );
  assert.match(text, /failed {2}team\/ethereum p3: lagging over http/);
  assert.match(text, /failed {2}team\/ethereum gone: unreachable over http/);
  assert.doesNotMatch(text, /f00dfeed|127\.0\.0\.1/);
});
