// `svc init`: what answers mean, and that every file it can write is valid and holds no key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { choicesOf, configText, INIT_VENDORS, type InitChoices } from "../../src/cli/init.ts";
import { load } from "../config/config-fixture.ts";

const ANSWERS = { chains: "all", vendors: "", port: "4000", hosted: "no" };

test("answers become choices; ids and aliases become names", () => {
  const choices = chosen({ chains: "8453, mainnet base", vendors: "alchemy=MY_KEY", hosted: "y" });
  assert.deepEqual(choices.chains, ["base", "ethereum"]);
  assert.deepEqual(choices.vendors, [{ vendor: "alchemy", variable: "MY_KEY" }]);
  assert.equal(choices.hosted, true);
  assert.equal(chosen({ chains: "base, all" }).chains, "all");
});

test("a vendor that needs a key has a variable of its name", () => {
  for (const [vendor, needsKey] of INIT_VENDORS) {
    const [{ variable } = { variable: null }] = chosen({ vendors: vendor }).vendors;
    if (needsKey) assert.match(variable ?? "", /^[A-Z][A-Z0-9_]*_KEY$/, vendor);
    else assert.equal(variable, null, vendor);
  }
});

test("every file that it writes is valid", () => {
  for (const chains of ["all", "base,ethereum"])
    for (const hosted of ["yes", "no"]) {
      const result = load(configText(chosen({ chains, hosted })));
      assert.ok(result.ok, JSON.stringify(result.ok ? [] : result.faults));
      assert.equal(result.config.onDemand === null, chains !== "all");
      assert.equal(result.config.hosted === null, hosted === "no");
    }
});

test("vendors are entries of the profile of URLs that name none, with the names of variables", () => {
  const { profiles } = parse(configText(chosen({ vendors: "drpc,1rpc,infura=OUR_INFURA_KEY" })));
  assert.deepEqual(profiles.public.providers, [
    { vendor: "drpc", key: "$" + "{DRPC_KEY}" },
    { vendor: "1rpc" },
    { vendor: "infura", key: "$" + "{OUR_INFURA_KEY}" },
  ]);
});

function chosen(answers: Readonly<Record<string, string>>): InitChoices {
  const choices = choicesOf({ ...ANSWERS, ...answers });
  if (typeof choices === "string") assert.fail(choices);
  return choices;
}
