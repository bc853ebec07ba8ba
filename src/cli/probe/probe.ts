// `svc probe`: what endpoints can do, found by asking them; a table, and entries for the file.

import type { Provider } from "../../core/provider/profile.ts";
import { realRuntime } from "../../runtime.ts";
import { PROBE_BOUNDS, type ProbeBounds } from "../../upstream/probe/endpoint-calls.ts";
import { headOf, type ProbeResult, probeEndpoint } from "../../upstream/probe/probe.ts";
import { ProbeTransports } from "../../upstream/probe/transports.ts";
import { type CommandInput, refuse } from "../command.ts";
import { endpointWith, shownAddress } from "../endpoint.ts";
import { entryOf } from "./entry.ts";
import type { Endpoint, Probed } from "./probed.ts";
import { tableOf } from "./table.ts";

const ALIVE_MS = 60_000;

/** The endpoints of a command line: a WebSocket address joins the one of the same host. */
export function endpointsOf(addresses: readonly string[]): readonly Endpoint[] {
  const isSocket = (address: string): boolean => /^wss?:/i.test(address);
  const hostOf = (address: string): string => URL.parse(address)?.hostname ?? "";
  const sockets = new Set(addresses.filter(isSocket));
  const endpoints = addresses
    .filter((address) => !isSocket(address))
    .map((url): Endpoint => {
      const own = [...sockets].find((socket) => hostOf(socket) === hostOf(url));
      if (own !== undefined) sockets.delete(own);
      return { url, wsUrl: own ?? url.replace(/^http/i, "ws"), isDerived: own === undefined };
    });
  const alone = [...sockets].map((wsUrl): Endpoint => ({ url: null, wsUrl, isDerived: false }));
  return [...endpoints, ...alone];
}

/** Probes endpoints, one after the other. `onEach` hears of each when it is done. */
export async function probeAll(
  endpoints: readonly Endpoint[],
  bounds: ProbeBounds = PROBE_BOUNDS,
  onEach: (address: string) => void = () => {},
): Promise<readonly Probed[]> {
  const transports = new ProbeTransports(realRuntime);
  // Pauses between requests do not keep the process alive.
  const alive = setInterval(() => {}, ALIVE_MS);
  const found: {
    readonly endpoint: Endpoint;
    readonly provider: Provider;
    readonly result: ProbeResult;
  }[] = [];
  try {
    for (const endpoint of endpoints) {
      const provider = providerAt(endpoint);
      onEach(addressOf(endpoint));
      found.push({ endpoint, provider, result: await probeEndpoint(transports, provider, bounds) });
    }
    const heads: (number | null)[] = [];
    for (const { provider, result } of found)
      heads.push(result.kind === "found" ? await headOf(transports, provider, bounds) : null);
    return found.map(({ endpoint, result }, at) => {
      const same = heads.filter((_, other) => chainOf(found[other]?.result) === chainOf(result));
      const best = Math.max(...same.map((head) => head ?? 0));
      const head = heads[at] ?? null;
      return {
        endpoint,
        address: addressOf(endpoint),
        result,
        lag: head === null ? null : best - head,
      };
    });
  } finally {
    await transports.close();
    clearInterval(alive);
  }
}

function chainOf(result: ProbeResult | undefined): number | null {
  return result?.kind === "found" ? result.chainId : null;
}

function addressOf({ url, wsUrl }: Endpoint): string {
  return shownAddress(url ?? wsUrl ?? "");
}

function providerAt({ url, wsUrl }: Endpoint): Provider {
  const escaped = (text: string): string => text.replaceAll("${", "$${");
  const settings = {
    ...(url === null ? {} : { url: escaped(url) }),
    ...(wsUrl === null ? {} : { ws_url: escaped(wsUrl) }),
  };
  const provider = endpointWith(settings, {});
  return (
    provider ??
    refuse("svc: an operand is no http://, https://, ws:// or wss:// URL; none was probed")
  );
}

/** Probes the addresses that the command names. */
export async function probe({ operands, flags }: CommandInput): Promise<void> {
  const endpoints = endpointsOf(operands);
  for (const endpoint of endpoints) providerAt(endpoint);
  const probed = await probeAll(endpoints, PROBE_BOUNDS, (address) =>
    console.error(`probing ${address}, with at most ${PROBE_BOUNDS.maxRequests} requests`),
  );
  if (flags["json"] === "true") console.log(JSON.stringify(probed.map(reportOf), null, 2));
  else {
    console.log(tableOf(probed));
    const entries = probed.map(entryOf).filter((entry) => entry !== null);
    if (entries.length > 0) console.log(`\nEntries for svc.yml:\n\n${entries.join("\n")}`);
  }
  if (probed.some(({ result }) => result.kind === "failed")) process.exitCode = 1;
}

/** What `--json` tells of an endpoint. */
export function reportOf(probed: Probed): Readonly<Record<string, unknown>> {
  const { address, result, lag } = probed;
  return { address, ...result, lag, entry: entryOf(probed) };
}
