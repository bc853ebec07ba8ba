// `svc init`: what answers mean, and that every file it can write is valid and holds no key.
import assert from "node:assert/strict";
import { test } from "node:test";
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
  for (const [vendor, { key }] of INIT_VENDORS) {
    const [{ variable } = { variable: null }] = chosen({ vendors: vendor }).vendors;
    if (key === "required") assert.match(variable ?? "", /^[A-Z][A-Z0-9_]*_KEY$/, vendor);
    else assert.equal(variable, null, vendor);
  }
});

test("every file that it writes is valid, with the keys of all vendors in the environment", () => {
  for (const chains of ["all", "base,ethereum"])
    for (const hosted of ["yes", "no"])
      for (const vendors of ["", [...INIT_VENDORS.keys()].join(",")]) {
        const choices = chosen({ chains, hosted, vendors });
        const variables = choices.vendors.flatMap(({ variable }) => variable ?? []);
        const env = Object.fromEntries(variables.map((name) => [name, "0123456789abcdef"]));
        const result = load(configText(choices), env);
        assert.ok(result.ok, JSON.stringify(result.ok ? [] : result.faults));
        assert.equal(result.config.onDemand === null, chains !== "all");
        assert.equal(result.config.hosted === null, hosted === "no");
      }
});

function chosen(answers: Readonly<Record<string, string>>): InitChoices {
  const choices = choicesOf({ ...ANSWERS, ...answers });
  if (typeof choices === "string") assert.fail(choices);
  return choices;
}
