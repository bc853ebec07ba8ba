// Profiles of Lasso (`config/profiles/*.yml`): a front matter and the chains with their providers,
// in much the words of `svc.yml`. Source: docs/CONFIGURATION.md of jaxernst/lasso-rpc.

import { ERROR_CATEGORIES } from "../../core/provider-errors/category.ts";
import {
  type ConfigDraft,
  type DraftChain,
  type DraftProvider,
  type DraftSet,
  given,
  section,
  uniqueId,
  wordOf,
} from "./draft.ts";
import type { ImportedValue } from "./imported-value.ts";
import type { Secrets } from "./secrets.ts";

const CALLERS = "callers are limited by `hosted`, where there are keys";

/** Converts a profile: its front matter and its body in one record. */
export function fromLasso(file: ImportedValue, secrets: Secrets): ConfigDraft {
  const slug = file.text("slug") ?? "public";
  const isDefault = slug === "public" || slug === "default";
  file.drop(CALLERS, "rps_limit", "burst_limit", "default_rps_limit", "default_burst_limit");
  file.drop("a name of the profile is not shown anywhere", "name", "type");
  const chains = new Map<number, DraftChain>();
  const sets = new Map<number, DraftSet>();
  const providers: DraftProvider[] = [];
  for (const [name, chain] of file.child("chains").entries()) {
    const chainId = chain.count("chain_id");
    if (chainId === null) {
      chain.note("has no chain_id");
      continue;
    }
    const taken = new Set<string>();
    for (const provider of chain.child("providers").items())
      providers.push(providerOf(provider, { chainId, secrets, taken }));
    sets.set(chainId, setOf(chain));
    chains.set(chainId, {
      name,
      settings: given({
        name: chain.text("name"),
        block_time_ms: chain.count("block_time_ms"),
      }),
      notes: [],
    });
  }
  const notes = isDefault
    ? []
    : [`\`/rpc/profile/${slug}/…\` stays its address; \`/rpc/…\` serves profile \`public\``];
  const own = {
    slug: isDefault ? "public" : wordOf(slug, "imported"),
    settings: {},
    sets,
    providers,
    vendors: [],
    notes,
  };
  const strategy =
    "the default strategy is no part of a profile in Lasso: set `routing.default_strategy` " +
    "(here: load-balanced)";
  return {
    settings: {},
    chains,
    profiles: [own],
    servesAll: false,
    notes: [...file.notes(), strategy],
  };
}

function setOf(chain: ImportedValue): DraftSet {
  const monitoring = chain.child("monitoring");
  const selection = chain.child("selection");
  const websocket = chain.child("websocket");
  const failover = websocket.child("failover");
  monitoring.drop(
    "a lagging provider is told as an incident, at the bound of max_lag_blocks",
    "lag_alert_threshold_blocks",
  );
  chain.drop("the console draws no map of chains", "ui-topology", "ui_topology");
  const settings = {
    ...section("selection", {
      max_lag_blocks: selection.count("max_lag_blocks"),
      archival_threshold: selection.count("archival_threshold"),
    }),
    ...section("monitoring", {
      probe_interval_ms: monitoring.durationMs("probe_interval_ms"),
      socket_heads: websocket.flag("subscribe_new_heads"),
    }),
    ...section("subscriptions", {
      new_heads_timeout_ms: websocket.durationMs("new_heads_timeout_ms"),
      max_backfill_blocks: failover.count("max_backfill_blocks"),
      backfill_timeout_ms: failover.durationMs("backfill_timeout_ms"),
    }),
  };
  return { settings, notes: chain.notes() };
}

interface ProviderPlace {
  readonly chainId: number;
  readonly secrets: Secrets;
  readonly taken: Set<string>;
}

function providerOf(
  source: ImportedValue,
  { chainId, secrets, taken }: ProviderPlace,
): DraftProvider {
  const id = uniqueId(wordOf(source.text("id") ?? "", "provider"), taken);
  const address = (name: string): string | null => {
    const url = source.text(name);
    return url === null ? null : secrets.url(url, id, source.child(name).path);
  };
  source.drop(
    "heads are listened to on every socket of a chain, or on none: monitoring.socket_heads",
    "subscribe_new_heads",
  );
  const capabilities = source.child("capabilities");
  const limits = capabilities.child("limits");
  const old = source.child("adapter_config");
  const settings = given({
    id,
    name: source.text("name"),
    url: address("url"),
    ws_url: address("ws_url"),
    priority: source.count("priority"),
    // Lasso takes every provider for an archive that does not say otherwise.
    archival: source.flag("archival") ?? true,
    ...section("capabilities", {
      unsupported_methods: listOrNull(capabilities.texts("unsupported_methods")),
      unsupported_categories: listOrNull(capabilities.texts("unsupported_categories")),
      ...section("limits", {
        max_block_range:
          limits.count("max_block_range") ??
          old.count("eth_get_logs_block_range") ??
          old.count("max_block_range"),
        max_block_age: limits.count("max_block_age"),
        block_age_methods: listOrNull(limits.texts("block_age_methods")),
      }),
      error_rules: errorRules(capabilities.child("error_rules")),
    }),
  });
  return { settings: { ...settings, id }, chainId, notes: source.notes() };
}

function listOrNull(list: readonly string[]): readonly string[] | null {
  return list.length === 0 ? null : list;
}

/** What svc calls the categories of Lasso that have another name there. */
const CATEGORIES: Readonly<Record<string, string>> = {
  capability_violation: "dialect",
  auth_error: "auth",
  server_error: "server",
  network_error: "network",
  method_not_found: "method_unsupported",
};

/** Rules for errors; `message_contains` may be one text in Lasso. */
function errorRules(list: ImportedValue): readonly unknown[] | null {
  const rules = list.items().flatMap((rule) => {
    const code = rule.child("code").value;
    const one = rule.child("message_contains").value;
    const pieces = typeof one === "string" ? [one] : listOrNull(rule.texts("message_contains"));
    const name = rule.text("category") ?? "";
    const category = ERROR_CATEGORIES.find((known) => known === (CATEGORIES[name] ?? name));
    if (category === undefined) {
      rule.note(`category \`${name}\`: svc has none like it`);
      return [];
    }
    return [
      given({ code: typeof code === "number" ? code : null, message_contains: pieces, category }),
    ];
  });
  return rules.length === 0 ? null : rules;
}
