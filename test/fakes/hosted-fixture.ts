// A hosted service in front of scripted providers: what the walks with keys talk to. Its data lies
// in a folder of its own, gone when the test ends.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Answer, PATIENT, type Service, startService } from "./service.ts";
import { type ScriptedUpstream, scriptedUpstream } from "./upstream.ts";

/** A hosted service; `premium` and `public` have a provider each on chain 1. */
export interface HostedFixture {
  readonly service: Service;
  readonly premium: ScriptedUpstream;
  readonly public: ScriptedUpstream;
  /** Creates an anonymous key. */
  anonymousKey(): Promise<string>;
  /** Creates an account with a key. */
  account(): Promise<{
    readonly key: string;
    readonly id: string;
    readonly token: string;
    readonly accountId: string;
  }>;
  /** Sends one call with a key in the path. */
  call(key: string, method?: string, path?: string): Promise<Answer>;
  /** Sends a request with a management token. */
  manage(token: string, method: string, path: string, body?: unknown): Promise<Answer>;
}

/** The operator's token of the fixture. */
export const OPERATOR_TOKEN = "operator-of-the-test-fixture-0123456789";

/** What closes the fixture: a test, or a file of tests that share it. */
export interface FixtureOwner {
  after(close: () => Promise<void>): void;
}

/**
 * Starts it; `hosted` is merged into that part of the configuration, `extra` into the top level.
 */
export async function hostedFixture(
  t: FixtureOwner,
  hosted: Record<string, unknown> = {},
  extra: Record<string, unknown> = {},
): Promise<HostedFixture> {
  const [premium, open] = await Promise.all([scriptedUpstream(), scriptedUpstream()]);
  const dataDir = mkdtempSync(join(tmpdir(), "svc-hosted-"));
  const profile = (id: string, url: string) => ({
    chains: { ethereum: { providers: [{ id, url }] } },
  });
  const service = await startService(
    JSON.stringify({
      server: { port: 0 },
      data_dir: dataDir,
      log_level: "debug",
      chains: {
        ethereum: { chain_id: 1, name: "Ethereum", aliases: ["mainnet"], block_time_ms: 12_000 },
      },
      profiles: {
        premium: profile("paid", premium.url),
        public: profile("open", open.url),
        team: profile("own", open.url),
      },
      hosted: { enabled: true, operator_token: OPERATOR_TOKEN, keys_per_hour: 1_000, ...hosted },
      deadlines: PATIENT,
      ...extra,
    }),
  );
  t.after(async () => {
    await service.close();
    await Promise.all([premium.close(), open.close()]);
    rmSync(dataDir, { recursive: true, force: true });
  });
  const manage: HostedFixture["manage"] = manageAt(service.url);
  let id = 0;
  return {
    service,
    premium,
    public: open,
    manage,
    anonymousKey: async () => (await manage("", "POST", "/api/v1/agent/keys")).json.key,
    async account() {
      const { json } = await manage("", "POST", "/api/v1/keys", { name: "first" });
      return {
        key: json.key,
        id: json.id,
        token: json.management_token,
        accountId: json.account_id,
      };
    },
    call: (key, method = "eth_gasPrice", path = "ethereum") =>
      service.post(`/rpc/k/${key}/${path}`, { jsonrpc: "2.0", id: ++id, method, params: [] }),
  };
}

/** Sends requests to the HTTP API at a URL, with a management token or without (`""`). */
export function manageAt(url: string): HostedFixture["manage"] {
  return async (token, method, path, body) => {
    const headers = {
      "content-type": "application/json",
      ...(token === "" ? {} : { authorization: `Bearer ${token}` }),
    };
    const response = await fetch(url + path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: text === "" ? undefined : JSON.parse(text),
    };
  };
}
