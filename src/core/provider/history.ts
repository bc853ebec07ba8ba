// How far back a provider has each kind of data: declared, reported by its node, or assumed. What
// its refusals taught is kept apart, in `capability.ts`. The entry of a report follows
// `eth_capabilities` of ethereum/execution-apis (pull 755), whose retention counts the head.

import { isHeight } from "../rpc/call.ts";
import type { Resource } from "../rpc/method.ts";

/** The blocks of which a provider has something. */
export interface HistoryBound {
  /** The oldest one; infinite = none. */
  readonly oldest: number;
  /** How many blocks behind the head are kept; infinite = none is dropped with time. */
  readonly window: number;
}

/** Where a bound is known from, the most certain source first. */
export const BOUND_SOURCES = ["learned", "declared", "reported", "assumed"] as const;

/** A bound, and where it is known from. */
export interface KnownBound extends HistoryBound {
  readonly source: (typeof BOUND_SOURCES)[number];
}

/** Bounds by resource, as far as they are stated. */
export type StatedHistory = Readonly<Partial<Record<Resource, HistoryBound>>>;

/** What is known of a provider by resource; null = nothing. */
export type KnownHistory = Readonly<Record<Resource, KnownBound | null>>;

/** The same for plans. `common`: blocks that lie within every bound, whatever is read of them. */
export type PlannedHistory = KnownHistory & { readonly common: HistoryBound };

export const WHOLE: HistoryBound = { oldest: 0, window: Number.POSITIVE_INFINITY };
export const NOTHING: HistoryBound = { ...WHOLE, oldest: Number.POSITIVE_INFINITY };

/** What only nodes with an archive keep for old blocks. */
export const ARCHIVED: ReadonlySet<Resource> = new Set(["state", "proofs", "traces"]);

/**
 * What is known of a provider before its refusals. A node without an archive is assumed to have
 * state, proofs and traces of so many blocks as no provider lacks. An archive is assumed to have
 * the rest as well.
 */
export function historyOf(
  { history, archival, maxBlockAge, blockAgeMethods }: DeclaredHistory,
  archivalThreshold: number,
  reported: StatedHistory | null,
): PlannedHistory {
  const recent = { oldest: 0, window: archivalThreshold };
  const aged =
    maxBlockAge === null || blockAgeMethods.size > 0 ? null : { oldest: 0, window: maxBlockAge };
  const known = (resource: Resource): KnownBound | null => {
    const isArchived = ARCHIVED.has(resource);
    const declared = history[resource] ?? aged ?? (archival && isArchived ? WHOLE : null);
    if (declared !== null) return { ...declared, source: "declared" };
    const own = reported?.[resource];
    if (own !== undefined) return { ...own, source: "reported" };
    if (archival) return { ...WHOLE, source: "assumed" };
    return isArchived ? { ...recent, source: "assumed" } : null;
  };
  const bounded = byResource(known);
  const bounds = Object.values(bounded).filter((bound) => bound !== null);
  return {
    ...bounded,
    common: {
      oldest: Math.max(...bounds.map((bound) => bound.oldest), 0),
      window: Math.min(...bounds.map((bound) => bound.window)),
    },
  };
}

/** What a provider declares of its history. */
interface DeclaredHistory {
  readonly history: StatedHistory;
  readonly archival: boolean;
  readonly maxBlockAge: number | null;
  readonly blockAgeMethods: ReadonlySet<string>;
}

/** A value for each resource. */
export function byResource<Value>(
  of: (resource: Resource) => Value,
): Readonly<Record<Resource, Value>> {
  return {
    state: of("state"),
    transactions: of("transactions"),
    receipts: of("receipts"),
    logs: of("logs"),
    blocks: of("blocks"),
    proofs: of("proofs"),
    traces: of("traces"),
  };
}

/** The oldest block within a bound at a head. */
export function oldestAt({ oldest, window }: HistoryBound, head: number): number {
  return Math.max(oldest, head - window, 0);
}

// The setting: the number of the oldest block, `last N`, or `none`.

export const BOUND_WORDS = /^(?:last ([1-9]\d{0,9})|none)$/;

/** A bound as it is written in the configuration; null = the text is none. */
export function readBound(value: number | string): HistoryBound | null {
  if (typeof value === "number") return isHeight(value) ? { ...WHOLE, oldest: value } : null;
  if (value === "none") return NOTHING;
  const blocks = BOUND_WORDS.exec(value)?.[1];
  return blocks === undefined ? null : { oldest: 0, window: Number(blocks) };
}

/** The setting that says a bound: `readBound` reads it. */
export function writtenBound({ oldest, window }: HistoryBound): number | string {
  if (oldest === Number.POSITIVE_INFINITY) return "none";
  return window === Number.POSITIVE_INFINITY ? oldest : `last ${window}`;
}

// The report of a node, and ours.

/** The members of a report, and the resources that they are about. */
const REPORTED = [
  ["state", "state"],
  ["tx", "transactions"],
  ["logs", "logs"],
  ["receipts", "receipts"],
  ["blocks", "blocks"],
  ["stateproofs", "proofs"],
] as const satisfies readonly (readonly [string, Resource])[];

/** Longer reports are not read. */
const MAX_REPORT_BYTES = 8_192;

/**
 * What a node reports by `eth_capabilities`; null = it is no such report. A resource without an
 * oldest block is left out: some nodes have all of it then, others do not know.
 */
export function readReport(result: Buffer): StatedHistory | null {
  if (result.length > MAX_REPORT_BYTES) return null;
  const report = membersOf(parsed(result.toString("utf8")));
  if (report === null) return null;
  const stated: Partial<Record<Resource, HistoryBound>> = {};
  let members = 0;
  for (const [member, resource] of REPORTED) {
    const entry = membersOf(report[member]);
    if (typeof entry?.["disabled"] !== "boolean") continue;
    members++;
    const bound = entry["disabled"] ? NOTHING : boundIn(entry);
    if (bound !== null) stated[resource] = bound;
  }
  return members === 0 ? null : stated;
}

function boundIn(entry: Readonly<Record<string, unknown>>): HistoryBound | null {
  const oldest = quantity(entry["oldestBlock"]);
  const retention = quantity(membersOf(entry["deleteStrategy"])?.["retentionBlocks"]);
  if (oldest === null && retention === null) return null;
  const window = retention === null ? Number.POSITIVE_INFINITY : Math.max(0, retention - 1);
  return { oldest: oldest ?? 0, window };
}

/** A number as nodes write it: hexadecimal, or plain in early versions of the method. */
function quantity(value: unknown): number | null {
  const isHex = typeof value === "string" && /^0x[0-9a-f]{1,14}$/i.test(value);
  const number = isHex ? Number(value) : value;
  return typeof number === "number" && isHeight(number) ? number : null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null ? { ...value } : null;
}

/** What several providers have together: by resource the bound that reaches furthest. */
export function unionOf(histories: readonly KnownHistory[], head: number): KnownHistory {
  return byResource((resource) => {
    let best: KnownBound | null = null;
    for (const { [resource]: bound } of histories)
      if (bound !== null && (best === null || oldestAt(bound, head) < oldestAt(best, head)))
        best = bound;
    // One that tells nothing may have some.
    const isOpen =
      best?.oldest === Number.POSITIVE_INFINITY &&
      histories.some((each) => each[resource] === null);
    return isOpen ? null : best;
  });
}

/**
 * The report of a history at a head, as a result of `eth_capabilities`. A hash that no provider has
 * told is null.
 */
export function writtenReport(history: KnownHistory, head: number, hash: string | null): Buffer {
  const report: Record<string, unknown> = { head: { number: hex(head), hash } };
  for (const [member, resource] of REPORTED) {
    const bound = history[resource];
    if (bound === null) report[member] = { disabled: false };
    else if (bound.oldest === Number.POSITIVE_INFINITY) report[member] = { disabled: true };
    else
      report[member] = {
        disabled: false,
        oldestBlock: hex(oldestAt(bound, head)),
        ...(bound.window === Number.POSITIVE_INFINITY
          ? {}
          : { deleteStrategy: { type: "window", retentionBlocks: hex(bound.window + 1) } }),
      };
  }
  return Buffer.from(JSON.stringify(report));
}

function hex(number: number): string {
  return `0x${number.toString(16)}`;
}
