// Loading configurations in tests: one line for what should be accepted and one for what should
// not. Knows no rule of its own.
import assert from "node:assert/strict";
import { type Config, loadConfig } from "../../src/config/config.ts";
import { type ConfigFault, formatFaults } from "../../src/config/config-fault.ts";
import type { Provider } from "../../src/core/provider/profile.ts";

/** Environment variables or flags. */
export type Env = Readonly<Record<string, string>>;

/** Loads `svc.yml` with this text. */
export function load(text: string | Uint8Array, env: Env = {}, flags: Env = {}) {
  return loadConfig({ file: "svc.yml", text, env, flags });
}

/** The configuration this text gives; fails where it is refused. */
export function accepted(text: string | Uint8Array, env: Env = {}, flags: Env = {}): Config {
  const result = load(text, env, flags);
  if (!result.ok) assert.fail(`refused:\n${formatFaults(result.faults)}`);
  return result.config;
}

/** The faults this text has; fails where it is accepted. */
export function refused(
  text: string | Uint8Array,
  env: Env = {},
  flags: Env = {},
): readonly ConfigFault[] {
  const result = load(text, env, flags);
  if (result.ok) assert.fail("accepted");
  return result.faults;
}

/** The providers of one set. */
export function providers(
  config: Config,
  slug = "public",
  chain = "ethereum",
): readonly Provider[] {
  return (
    config.profiles.find((profile) => profile.slug === slug)?.chains.get(chain)?.providers ?? []
  );
}

/** A file whose providers are the given YAML lines; the first of them stands on line 8. */
export function withProviders(...lines: readonly string[]): string {
  return [
    "chains:",
    "  ethereum: { chain_id: 1 }",
    "  base: { chain_id: 8453, aliases: [b] }",
    "profiles:",
    "  public:",
    "    chains:",
    "      ethereum: { providers: [",
    ...lines.map((line) => `        ${line}`),
    "        ]}",
  ].join("\n");
}

/** The smallest file that routes. */
export const VALID = withProviders("{ id: a, url: 'https://a.example' }");
