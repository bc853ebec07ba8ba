// A strategy is a row of one table: settings, paths, prices and documents know each of its names
// because they derive from the table, and no other file of the product lists them.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { z } from "zod";
import { schemaOf } from "../../../src/config/kinds.ts";
import { configFile, RESERVED_CHAIN_NAMES } from "../../../src/config/schema.ts";
import {
  byStrategy,
  DEFAULT_STRATEGY,
  namesOf,
  STRATEGIES,
  STRATEGY_NAMES,
  STRATEGY_SPELLINGS,
  spellingsOf,
} from "../../../src/core/routing/strategy.ts";
import { RESERVED_SLUGS } from "../../../src/hosted/profiles/document.ts";
import { pricing } from "../../../src/web/contract/agent.ts";
import { openApiDocument } from "../../../src/web/discovery/openapi.ts";
import { agentDocument, skillText } from "../../../src/web/discovery/texts.ts";
import { URL_FORMS } from "../../../src/web/rpc/target.ts";
import { accepted, refused } from "../../config/config-fixture.ts";
import { configuration, facts, HOSTED, SITE } from "../../web/discovery/facts-fixture.ts";

const ROOT = join(import.meta.dirname, "../../..");
const TABLE = "src/core/routing/strategy.ts";

test("rows have names of their own, in the shape that paths take", () => {
  const names = STRATEGIES.flatMap(namesOf);
  assert.equal(new Set(names).size, names.length);
  for (const name of names) assert.match(name, /^[a-z]+(-[a-z]+)*$/);
  assert.equal(DEFAULT_STRATEGY, STRATEGY_NAMES[0]);
  for (const row of STRATEGIES) {
    const { name, formerNames, summary } = row;
    assert.match(summary, /\.$/);
    const spellings = [name, ...formerNames].flatMap((each) => [each, each.replaceAll("-", "_")]);
    assert.deepEqual(spellingsOf(row), [...new Set(spellings)]);
    for (const spelling of spellings) assert.equal(STRATEGY_SPELLINGS.get(spelling), name);
  }
});

test("the factors of the configuration are those of the table", () => {
  const properties = at(schemaOf(configFile), ["hosted", "tariff", "factors"]);
  assert.deepEqual(Object.keys(properties).sort(), [...STRATEGY_SPELLINGS.keys()].sort());
  for (const row of STRATEGIES) {
    const { factor, summary } = row;
    const { default: usual, description } = factorSchema.parse(properties[row.name]);
    assert.deepEqual({ factor: usual, summary: description }, { factor, summary });
  }
  assert.deepEqual(
    accepted(configuration({ enabled: true })).hosted?.tariff.factors,
    byStrategy(({ factor }) => factor),
  );
});

test("each factor is set by any spelling of its strategy, and never by two", () => {
  const factorsAs = (factors: Readonly<Record<string, number>>) =>
    configuration({ enabled: true, tariff: { factors } });
  for (const row of STRATEGIES) {
    const spellings = spellingsOf(row);
    for (const spelling of spellings)
      assert.deepEqual(
        accepted(factorsAs({ [spelling]: 7 })).hosted?.tariff.factors,
        byStrategy(({ name, factor }) => (name === row.name ? 7 : factor)),
      );
    for (const [at, one] of spellings.entries())
      for (const other of spellings.slice(at + 1)) {
        const faults = refused(factorsAs({ [one]: 7, [other]: 7 }));
        assert.match(faults.map(({ message }) => message).join(), /one setting/);
      }
  }
});

test("no chain and no Custom profile may have the name of a strategy", () => {
  for (const spelling of STRATEGY_SPELLINGS.keys()) assert.ok(RESERVED_CHAIN_NAMES.has(spelling));
  for (const name of STRATEGIES.flatMap(namesOf)) assert.ok(RESERVED_SLUGS.has(name));
});

test("documents and prices name every strategy of the table", () => {
  assert.ok(URL_FORMS.some((form) => form.includes("{strategy}")));
  const agent = agentSchema.parse(agentDocument(HOSTED, SITE));
  assert.deepEqual(agent.strategies, STRATEGY_NAMES);
  assert.equal(agent.default_strategy, DEFAULT_STRATEGY);
  const routed = facts({ enabled: true }, { routing: { default_strategy: "fastest" } });
  assert.equal(agentSchema.parse(agentDocument(routed, SITE)).default_strategy, "fastest");
  for (const chain of agent.chains) assert.deepEqual(chain.strategies, STRATEGY_NAMES);
  assert.deepEqual(Object.keys(agent.pricing.strategy_factors), STRATEGY_NAMES);
  for (const prices of Object.values(agent.pricing.examples))
    assert.deepEqual(Object.keys(prices), STRATEGY_NAMES);
  assert.deepEqual(Object.keys(pricing.shape.default.shape.by_strategy.shape), STRATEGY_NAMES);
  const names = JSON.stringify(STRATEGY_NAMES);
  assert.ok(JSON.stringify(openApiDocument(HOSTED, SITE)).includes(`"enum":${names}`));
  assert.ok(
    skillText(facts({ enabled: true }), SITE).includes(`| ${STRATEGY_NAMES.join(" | ")} |`),
  );
});

test("no other file of the product lists the strategies", () => {
  const lists = (text: string): boolean =>
    STRATEGY_NAMES.every((name) => new RegExp(`["'\\s]${name}["'\\s:,]`).test(text));
  const files = globSync("src/**/*.ts", { cwd: ROOT }).map((path) => path.replaceAll("\\", "/"));
  assert.deepEqual(
    files.filter((path) => lists(readFileSync(join(ROOT, path), "utf8"))),
    [TABLE],
  );
});

const factorSchema = z.object({ default: z.number(), description: z.string() });
const nodeSchema = z.object({ properties: z.record(z.string(), z.unknown()) });
const agentSchema = z.object({
  strategies: z.array(z.string()),
  default_strategy: z.string(),
  chains: z.array(z.object({ strategies: z.array(z.string()) })).min(1),
  pricing: z.object({
    strategy_factors: z.record(z.string(), z.number()),
    examples: z.record(z.string(), z.record(z.string(), z.unknown())),
  }),
});

/** The properties of the object at a path of the schema. */
function at(schema: unknown, path: readonly string[]): Readonly<Record<string, unknown>> {
  const { properties } = nodeSchema.parse(schema);
  const [first, ...rest] = path;
  return first === undefined ? properties : at(properties[first], rest);
}
