// The table of `svc probe`: a row for each property, a column for each endpoint.
import { RESOURCES } from "../../core/rpc/method.ts";
import { knownChain } from "../../presets/chains.ts";
import type { ProbeFindings } from "../../upstream/probe/probe.ts";
import type { TriedMethod } from "../../upstream/probe/served-methods.ts";
import type { Probed } from "./probed.ts";

/** Endpoints beside each other. */
const MAX_COLUMNS = 4;
const GAP = "  ";

type Row = readonly [name: string, cell: (found: ProbeFindings, probed: Probed) => string];

const ROWS: readonly Row[] = [
  ["chain", ({ chainId }) => `${knownChain(String(chainId))?.name ?? "unknown"} (${chainId})`],
  ["client", ({ client }) => client ?? "not said"],
  ["head", ({ head }, { lag }) => `${head}${lag === null ? "" : `, ${lag} behind the best`}`],
  ["finalized", ({ finalized }) => heightText(finalized)],
  ["safe", ({ safe }) => heightText(safe)],
  ["latency", ({ latency }) => `p50 ${latency.p50}, p90 ${latency.p90}, p99 ${latency.p99} ms`],
  ...RESOURCES.map(
    (resource): Row => [
      `${resource} from`,
      ({ oldest, head }) => oldestText(oldest[resource], head),
    ],
  ),
  ["log range", ({ logs }) => rangeText(logs)],
  ["many logs", ({ logs }) => manyText(logs)],
  ["methods", ({ methods }) => namespacesText(methods)],
  ["refused", ({ methods }) => refusedText(methods)],
  ["batches", ({ batch }) => (batch === null ? "not tried" : yesNo(batch))],
  ["WebSocket", ({ socket }) => (socket?.works === true ? `yes: ${listText(socket.kinds)}` : "no")],
  ["requests", (found) => requestsText(found)],
];

/** The table of all endpoints. */
export function tableOf(probed: readonly Probed[]): string {
  const found = probed.filter(({ result }) => result.kind === "found");
  const groups = Array.from({ length: Math.ceil(found.length / MAX_COLUMNS) }, (_, at) =>
    found.slice(at * MAX_COLUMNS, (at + 1) * MAX_COLUMNS),
  );
  return [...groups.map(groupTable), ...probed.flatMap(failedText)].join("\n\n");
}

function groupTable(probed: readonly Probed[]): string {
  const lines = [
    ["", ...probed.map(({ address }) => address)],
    ...ROWS.map(([name, cell]) => [
      name,
      ...probed.map((each) => (each.result.kind === "found" ? cell(each.result, each) : "")),
    ]),
  ];
  const widths = lines[0]?.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  );
  const table = lines.map((line) =>
    line
      .map((cell, at) => cell.padEnd(widths?.[at] ?? 0))
      .join(GAP)
      .trimEnd(),
  );
  return table.join("\n");
}

function failedText({ address, result }: Probed): readonly string[] {
  return result.kind === "failed" ? [`${address}: ${result.reason}: ${result.said}`] : [];
}

function heightText(height: number | null): string {
  return height === null ? "no such tag" : String(height);
}

function oldestText(oldest: number | null, head: number): string {
  if (oldest === null) return "not served, or not seen";
  return oldest === 0 ? "the first block" : `${oldest}: the last ${head - oldest} blocks`;
}

function rangeText({ maxBlockRange, isUnlimited }: ProbeFindings["logs"]): string {
  if (maxBlockRange === null) return "no eth_getLogs";
  return `${isUnlimited ? "at least " : ""}${maxBlockRange} blocks`;
}

function manyText({ mostLogs, refusesManyLogs }: ProbeFindings["logs"]): string {
  if (mostLogs === null) return "not seen";
  return refusesManyLogs ? `refused; ${mostLogs} accepted` : `${mostLogs} accepted`;
}

/** By namespace: how many of the tried methods are served. */
function namespacesText(methods: readonly TriedMethod[]): string {
  const names = [...new Set(methods.map(({ method }) => namespaceOf(method)))];
  const counts = names.map((name) => {
    const own = methods.filter(({ method }) => namespaceOf(method) === name);
    return `${name} ${own.filter(({ outcome }) => outcome === "served").length}/${own.length}`;
  });
  return counts.join(", ");
}

function refusedText(methods: readonly TriedMethod[]): string {
  return listText(
    methods.filter(({ outcome }) => outcome === "refused").map(({ method }) => method),
  );
}

/** The part of a method's name before `_`. */
export function namespaceOf(method: string): string {
  return method.slice(0, method.indexOf("_"));
}

function requestsText({ requests, rateLimits, ended }: ProbeFindings): string {
  const limited = rateLimits === 0 ? "" : `, ${rateLimits} rate limits`;
  return `${requests}${limited}${ended === null ? "" : `; ${ended}`}`;
}

function listText(list: readonly string[]): string {
  return list.length === 0 ? "none" : list.join(" ");
}

function yesNo(is: boolean): string {
  return is ? "yes" : "no";
}
