// `svc check-config --live`: asks every provider of a file whether it is there, of the right chain
// and not behind, and tells when certificates end.
import type { Config } from "../../config/config.ts";
import { realRuntime } from "../../runtime.ts";
import { checkProviders, type ProviderCheck } from "../../upstream/provider-check.ts";
import { SsrfGuard } from "../../upstream/ssrf-guard.ts";
import { TimerWheel } from "../../upstream/timer-wheel.ts";

const DAY_MS = 86_400_000;
/** Certificates that end sooner are pointed out. */
const SOON_DAYS = 14;
const TIMEOUT_MS = 5_000;
const CONCURRENCY = 8;

/** What is told of the providers of a file. */
export interface LiveCheck {
  /** One line a provider. */
  readonly lines: readonly string[];
  readonly isGood: boolean;
}

/** Checks every provider of every profile, one profile after the other. */
export async function checkLive({ profiles }: Pick<Config, "profiles">): Promise<LiveCheck> {
  const lines: string[] = [];
  let isGood = true;
  for (const profile of profiles) {
    const ends = new Map<string, number>();
    const sets = [...profile.chains.values()];
    const count = sets.reduce((sum, { providers }) => sum + providers.length, 0);
    const parts = {
      runtime: realRuntime,
      timerWheel: new TimerWheel(realRuntime),
      guard: new SsrfGuard(),
      onHandshake: (_: boolean, proved: { host: string; validToMs: number } | null) =>
        void (proved !== null && ends.set(proved.host, proved.validToMs)),
    };
    const totalMs = 2 * TIMEOUT_MS * (1 + Math.ceil(count / CONCURRENCY));
    const bounds = { timeoutMs: TIMEOUT_MS, totalMs, concurrency: CONCURRENCY };
    for (const check of await checkProviders(parts, profile, bounds)) {
      isGood &&= check.result.kind === "ok";
      const set = profile.chains.get(check.chain);
      const provider = set?.providers.find(({ id }) => id === check.provider);
      const certificate = provider === undefined ? "" : certificateText(provider.url, ends);
      lines.push(lineOf(profile.slug, check, certificate));
    }
  }
  return { lines, isGood };
}

function lineOf(slug: string, { chain, provider, result }: ProviderCheck, after: string): string {
  const name = `${slug}/${chain} ${provider}`;
  return result.kind === "ok"
    ? `ok      ${name}: block ${result.height}${after}`
    : `failed  ${name}: ${result.reason} over ${result.transport}: ${result.said}${after}`;
}

function certificateText(url: string | null, ends: ReadonlyMap<string, number>): string {
  const parsed = url === null ? null : URL.parse(url);
  const validToMs = ends.get(`${parsed?.hostname}:${parsed?.port || 443}`);
  if (validToMs === undefined) return "";
  const days = Math.floor((validToMs - realRuntime.wallMs()) / DAY_MS);
  return `, certificate ends in ${days} days${days < SOON_DAYS ? " (soon)" : ""}`;
}
