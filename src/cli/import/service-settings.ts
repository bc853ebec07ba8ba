// Settings of the service as a whole that several formats have.
import type { Fields } from "../../core/fields.ts";
import { section } from "./draft.ts";
import type { Secrets } from "./secrets.ts";

const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal"];

/** The same time for calls of every class, unless traces have another one. */
export function allDeadlines(ms: number | null, tracesMs: number | null = null): Fields {
  const [plain, traces] = [
    ["cheap_ms", "standard_ms", "default_ms"].map((name) => [name, ms] as const),
    ["trace_tx_ms", "trace_block_ms"].map((name) => [name, tracesMs ?? ms] as const),
  ];
  return section("deadlines", Object.fromEntries([...plain, ...traces]));
}

/** The address where `/metrics` is served; null = on the port of calls. */
export function metricsAddress(host: string | null, port: number | null): string | null {
  if (port === null) return null;
  return `${host === null || host === "" ? "0.0.0.0" : host}:${port}`;
}

/** A log level that svc has. */
export function logLevelOf(text: string | null): string | null {
  const level = text?.toLowerCase() ?? "";
  if (level === "crit") return "fatal";
  return LOG_LEVELS.includes(level) ? level : null;
}

/** The address of a Redis server without its literal password; null = svc takes no such address. */
export function redisUrlOrNull(url: string, secrets: Secrets, path: string): string | null {
  const isPlain = /^(?:rediss?|valkeys?):\/\/[^/?#]+(?:\/\d{0,3})?$/.test(url);
  if (/^\$\{?\w+\}?$/.test(url)) return secrets.text(url);
  return isPlain ? secrets.url(url, "REDIS", path) : null;
}
