import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { PaymentChains } from "../fakes/payment-chains.ts";
import { assertBooked, callOf, type Ending, paymentChains, sessionStage, stockClient } from "./session-stage.ts";

let chains: PaymentChains;
const endings: (() => Promise<void>)[] = [];
before(async () => {
  chains = await paymentChains({ after: (run) => void endings.push(run) });
});
after(async () => {
  for (const run of endings.reverse()) await run();
});

test("stock client", async (t) => {
  const stage = await sessionStage(t, chains);
  const { manager } = stockClient(chains, chains.payer);
  const r = await manager.fetch(stage.url(), callOf("eth_gasPrice"));
  console.log(r.status, await r.text(), r.receipt, Object.fromEntries(r.headers));
  console.log(
    stage
      .service()
      .log()
      .split("\n")
      .filter((l) => /warn|error|"level":[45]0/.test(l))
      .slice(0, 10)
      .join("\n"),
  );
  const r2 = await manager.fetch(stage.url(), callOf("eth_gasPrice", 2));
  console.log(r2.status, await r2.text(), r2.receipt);
  const c = await manager.close();
  console.log(c);
  await stage.read(async (s) => console.log(await assertBooked(s)));
});
