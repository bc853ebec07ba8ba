// A service in front of scripted providers, taken down when the test ends: the usual set of a walk.
// Knows nothing of what the test is about.
import type { TestContext } from "node:test";
import { type Answer, configText, type Service, startService } from "./service.ts";
import { type Script, type ScriptedUpstream, scriptedUpstream } from "./upstream.ts";

/** Providers `a`, `b`, `c`, … in this order of priority, behind profile `team` on chain 1. */
export interface ServiceFixture {
  readonly service: Service;
  readonly upstreams: readonly ScriptedUpstream[];
  /** Sends one call at priority order; the path's query asks for the evidence in a header. */
  call(method: string, params?: readonly unknown[], query?: string): Promise<Answer>;
}

/** One attempt as the evidence shows it. */
export interface ShownAttempt {
  readonly provider: string;
  readonly outcome: string;
  readonly category: string | null;
  readonly code: number | null;
  readonly latency_ms: number;
  /** Only of a hedge. */
  readonly hedged_after_ms?: number;
}

/** Settings of a fixture; each is merged into the configuration as written there. */
export interface FixtureSettings {
  readonly extra?: Record<string, unknown>;
  readonly set?: Record<string, unknown>;
  readonly providers?: readonly Record<string, unknown>[];
  readonly slug?: string;
}

const LOOK_MS = 10;
const MOST_LOOK_MS = 50;

/** Starts the scripted providers and the service. */
export async function serviceFixture(
  t: TestContext,
  scripts: readonly (Script | undefined)[],
  settings: FixtureSettings = {},
): Promise<ServiceFixture> {
  const upstreams = await Promise.all(scripts.map((script) => scriptedUpstream(script)));
  const providers = upstreams.map(({ url }, n) => ({
    id: nameOf(n),
    url,
    priority: n + 1,
    ...settings.providers?.[n],
  }));
  const service = await startService(
    configText(providers, settings.extra, settings.set, settings.slug),
  );
  t.after(async () => {
    await Promise.all([service.close(), ...upstreams.map((it) => it.close())]);
  });
  let id = 100;
  return {
    service,
    upstreams,
    call: (method, params = [], query = "?include_meta=headers") =>
      service.post(`/rpc/priority/ethereum${query}`, { jsonrpc: "2.0", id: ++id, method, params }),
  };
}

/** The evidence in an answer's header. */
export function metaOf({
  headers,
}: Answer): Record<string, unknown> & { readonly attempts: readonly ShownAttempt[] } {
  return JSON.parse(Buffer.from(headers.get("x-svc-meta") ?? "", "base64url").toString());
}

/** Provider and category of each attempt, for example `a:server b:ok`. */
export function walked(answer: Answer): string {
  return metaOf(answer)
    .attempts.map((it) => `${it.provider}:${it.category ?? "ok"}`)
    .join(" ");
}

/** The health of one provider over HTTP, as `/api/metrics` shows it. */
// biome-ignore-start lint/suspicious/noExplicitAny: tests look into documents of any shape
export async function healthOf(
  service: Service,
  provider: string,
  profile?: string,
  chain = "1",
): Promise<any> {
  // biome-ignore-end lint/suspicious/noExplicitAny: tests look into documents of any shape
  const { json } = await service.get(`/api/metrics/${chain}`);
  const of = json.profiles.find(
    (it: { profile: string }) => profile === undefined || it.profile === profile,
  );
  return of.providers.find((it: { id: string }) => it.id === provider).transports[0];
}

/** Waits until `look` finds something, at most `withinMs`. */
export async function until<T>(
  what: string,
  look: () => T | null | undefined | false | Promise<T | null | undefined | false>,
  withinMs = 60_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (let pauseMs = LOOK_MS; ; await new Promise((resolve) => setTimeout(resolve, pauseMs))) {
    const looked = look();
    const found = await looked;
    if (found !== null && found !== undefined && found !== false) return found;
    if (performance.now() > deadline) throw new Error(`${what}: not within ${withinMs} ms`);
    // A look over HTTP takes time from what it waits for, and from other tests.
    if (looked instanceof Promise) pauseMs = Math.min(pauseMs * 1.5, MOST_LOOK_MS);
  }
}

function nameOf(index: number): string {
  return String.fromCharCode(97 + index);
}
