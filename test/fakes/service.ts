// The real service in this process, on a free port, from a configuration text: what the walks talk
// to. Its log is kept for the test to read.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { pino } from "pino";
import { type App, build, type Start } from "../../src/app/app.ts";
import { serviceAlone } from "../../src/app/service-parts.ts";
import { type Config, loadConfig } from "../../src/config/config.ts";
import { formatFaults } from "../../src/config/config-fault.ts";
import { type Runtime, realRuntime } from "../../src/runtime.ts";
import { withHttpVariant } from "./http-variant.ts";
import { PLAIN_ROUTING, withPlainRouting } from "./plain-routing.ts";

/** A running service. */
export interface Service {
  readonly url: string;
  readonly port: number;
  readonly app: App;
  readonly config: Config;
  /** Everything logged so far, as text. */
  readonly log: () => string;
  /** POSTs a body to a path and reads the answer. */
  post(path: string, body: unknown, headers?: Readonly<Record<string, string>>): Promise<Answer>;
  get(path: string): Promise<Answer>;
  /** Resolves once every provider of chain 1 has been probed. */
  probed(): Promise<void>;
  /** Ends as on SIGTERM: finishes what was accepted, also requests that may be on the way. */
  drain(): Promise<void>;
  /** Finishes what was accepted. Does not wait for more: the test is over. */
  close(): Promise<void>;
}

/** At least as long as a drain waits for requests that may be on the way. */
const QUIET_MS = 1_000;

/** An answer as text and, where it is JSON, as a value. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of any shape
  readonly json: any;
}

/**
 * Deadlines of calls, as `deadlines` of a configuration: nothing fails for being slow, unless its
 * test is about that.
 */
export const PATIENT = { cheap_ms: 60_000, standard_ms: 60_000, default_ms: 60_000 };

/**
 * A configuration of chain 1 (`ethereum`) with these providers; `extra` replaces what stands at the
 * top level and `chain` inside the provider set.
 */
export function configText(
  providers: readonly ({ readonly id: string } & Record<string, unknown>)[],
  extra: Record<string, unknown> = {},
  set: Record<string, unknown> = {},
  slug = "team",
): string {
  return JSON.stringify({
    server: { port: 0 },
    log_level: "debug",
    chains: {
      ethereum: {
        chain_id: 1,
        name: "Ethereum Mainnet",
        aliases: ["mainnet"],
        block_time_ms: 12_000,
      },
    },
    profiles: { [slug]: { chains: { ethereum: { ...set, providers } } } },
    ...PLAIN_ROUTING,
    deadlines: PATIENT,
    ...extra,
  });
}

/** The service of a process that is alone. */
export const ALONE = serviceAlone(realRuntime, (error) => {
  throw error;
});

/** Reads a configuration text; throws with its faults. */
export function configOf(text: string): Config {
  const result = loadConfig({
    file: "test.yml",
    text: withHttpVariant(withPlainRouting(text)),
    env: {},
    flags: {},
  });
  if (!result.ok) throw new Error(formatFaults(result.faults));
  return result.config;
}

/**
 * Starts the service, with its configuration changed where a file cannot say it. Close it in the
 * test's `after`.
 */
export async function startService(
  text: string,
  runtime: Runtime = realRuntime,
  complete = (config: Config): Config => config,
  more: Pick<Start, "knownChain"> = {},
): Promise<Service> {
  const { config, removeData } = withOwnData(complete(configOf(text)));
  let lines = "";
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines += chunk.toString();
      done();
    },
  });
  let skippedMs = 0;
  const app = await build(config, {
    runtime: { ...runtime, now: () => runtime.now() + skippedMs },
    log: pino({ level: config.logLevel }, sink),
    version: "0.0.0-test",
    ...more,
  });
  const drain = async (): Promise<void> => {
    await app.close();
    removeData();
    assert.doesNotMatch(lines, /returned twice/, "a buffer was returned twice");
  };
  const url = `http://127.0.0.1:${app.port}`;
  const read = async (path: string, init: RequestInit): Promise<Answer> => {
    const response = await fetch(url + path, init);
    const body = await response.text();
    return { status: response.status, headers: response.headers, text: body, json: parsed(body) };
  };
  return {
    url,
    port: app.port,
    app,
    config,
    log: () => lines,
    post: (path, body, headers = {}) =>
      read(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    get: (path) => read(path, {}),
    async probed() {
      const deadline = Date.now() + 60_000;
      for (;;) {
        const { json } = await read("/api/metrics/1", {});
        const providers: { transports: { transport: string; block_height: number | null }[] }[] =
          json.profiles[0].providers;
        if (
          providers.every((it) =>
            it.transports.every((t) => t.transport !== "http" || t.block_height !== null),
          )
        )
          return;
        if (Date.now() > deadline) throw new Error("providers were not probed in time");
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
    drain,
    async close() {
      const drained = drain();
      skippedMs = QUIET_MS;
      await drained;
    },
  };
}

/** Gives a configuration without a `data_dir` one of its own: tests keep nothing for others. */
function withOwnData(config: Config): { readonly config: Config; readonly removeData: () => void } {
  if (config.dataDir !== DEFAULT_DATA_DIR) return { config, removeData: () => {} };
  const dataDir = mkdtempSync(join(tmpdir(), "svc-data-"));
  const removeData = (): void => rmSync(dataDir, { recursive: true, force: true });
  return { config: { ...config, dataDir }, removeData };
}

const DEFAULT_DATA_DIR = ".svc";

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
