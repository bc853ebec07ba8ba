// Callers with filters, each polled at a node picked by chance while nodes come and go. What they
// are told is compared with the chain (decisions/filters.md): nothing is lost; what is told again
// was told by a node, or beside a database, that was disturbed. Pending transactions have no
// history that could be compared, and polled providers none at all.
import { setTimeout as sleep } from "node:timers/promises";
import { ADDRESSES } from "../../fakes/chain.ts";
import { until } from "../../fakes/service-fixture.ts";
import type { Disturbances } from "./faults.ts";
import { createFilterView, type FilterKind, type FilterView, type Telling } from "./filter-view.ts";
import type { MovingChain } from "./moving-chain.ts";
import type { NodeProcess } from "./node-process.ts";
import { pick, type SpendingAccount } from "./traffic.ts";

/** What callers with filters need. */
export interface FilterParts {
  readonly nodes: readonly NodeProcess[];
  readonly account: SpendingAccount;
  readonly moving: MovingChain;
  readonly random: () => number;
  readonly disturbances: Pick<Disturbances, "wasCalm">;
}

/** What became of all filters. */
export interface FilterFindings {
  readonly wrong: readonly string[];
  readonly polls: number;
  /** Polls that another node answered than the one before. */
  readonly moves: number;
  /** Polls that were refused, or whose connection was lost. */
  readonly refused: number;
  readonly lost: number;
  /** Filters of which an answer may have gone by unread: what they miss says nothing. */
  readonly unread: number;
  readonly blocks: number;
  readonly logs: number;
  readonly removed: number;
  readonly again: number;
  /** Logs of blocks that are gone, told in an answer that was not noted and never taken back. */
  readonly left: number;
  readonly reorgs: number;
}

/** Filters that are polled. */
export interface PolledFilters {
  /** Polls until all was told, at nodes that are well; uninstalls the filters. */
  finish(): Promise<FilterFindings>;
}

const CRITERIA = [
  { kind: "blocks", address: null },
  { kind: "logs", address: null },
  { kind: "blocks", address: null },
  { kind: "logs", address: 1 },
] as const satisfies readonly { readonly kind: FilterKind; readonly address: number | null }[];
const PAUSE_MS = 400;
/** A node that is halted answers when it goes on. */
const ANSWER_MS = 30_000;
const COMPLETE_MS = 60_000;
/** A node that is polled waits so long for an answer that another one may have on its way. */
const WAITED_MS = 1_900;
/** By then a node that is well has noted what it told. */
const NOTED_MS = 2_000;
const TRIES = 20;

/** One filter and what came of its polls. */
interface Polled {
  readonly id: string;
  readonly view: FilterView;
  lastNode: string | null;
  polls: number;
  moves: number;
  refused: number;
  lost: number;
  /** An answer came too late for its caller. */
  isUnread: boolean;
  readonly wrong: string[];
}

/** Makes filters at nodes that are well, and begins to poll them. */
export async function startFilters(parts: FilterParts): Promise<PolledFilters> {
  const { moving, random } = parts;
  const before = moving.reorgs();
  const polled = await Promise.all(CRITERIA.map((criteria) => createFilter(parts, criteria)));
  const stopMining = moving.start(random);
  let isRunning = true;
  const loops = polled.map(async (filter) => {
    while (isRunning) {
      await poll(parts, filter);
      await sleep(random() * PAUSE_MS);
    }
  });
  return {
    async finish() {
      stopMining();
      for (const deadlineMs = performance.now() + COMPLETE_MS; performance.now() < deadlineMs; ) {
        if (polled.every(({ view }) => view.isComplete())) break;
        await sleep(PAUSE_MS);
      }
      isRunning = false;
      await Promise.all(loops);
      const ended = await Promise.all(polled.map((filter) => uninstall(parts, filter)));
      return findingsOf(polled, ended.flat(), moving.reorgs() - before);
    },
  };
}

function findingsOf(
  polled: readonly Polled[],
  ended: readonly string[],
  reorgs: number,
): FilterFindings {
  const sum = (of: (filter: Polled) => number): number =>
    polled.reduce((total, filter) => total + of(filter), 0);
  return {
    wrong: [
      ...polled.flatMap(({ wrong }) => wrong),
      ...polled.flatMap(({ view, isUnread }) => (isUnread ? [] : view.missing())),
      ...ended,
    ],
    polls: sum(({ polls }) => polls),
    moves: sum(({ moves }) => moves),
    refused: sum(({ refused }) => refused),
    lost: sum(({ lost }) => lost),
    unread: sum(({ isUnread }) => Number(isUnread)),
    blocks: sum(({ view }) => view.counts.blocks),
    logs: sum(({ view }) => view.counts.logs),
    removed: sum(({ view }) => view.counts.removed),
    again: sum(({ view }) => view.counts.again),
    left: sum(({ view }) => view.counts.left),
    reorgs,
  };
}

async function createFilter(
  parts: FilterParts,
  { kind, address }: (typeof CRITERIA)[number],
): Promise<Polled> {
  const { nodes, moving, random, disturbances } = parts;
  const filter = address === null ? {} : { address: ADDRESSES[address] ?? "" };
  const method = kind === "blocks" ? "eth_newBlockFilter" : "eth_newFilter";
  for (let tries = 0; tries < TRIES; tries++) {
    const node = pick(nodes, random);
    const answer = await call(parts, node, method, kind === "blocks" ? [] : [filter]);
    if (answer.kind === "result" && typeof answer.value === "string") {
      const name = `${kind} filter ${answer.value.slice(0, 10)}`;
      const fromHeight = moving.chain.tip().number;
      const mayRepeat = (earlier: Telling, later: Telling): boolean =>
        mayTellAgain(parts, earlier, later);
      const mayForget = ({ node, sentMs, atMs }: Telling): boolean =>
        !disturbances.wasCalm(node, sentMs, atMs + NOTED_MS);
      const view = createFilterView({
        name,
        kind,
        chain: moving.chain,
        filter,
        fromHeight,
        mayRepeat,
        mayForget,
      });
      const counts = { polls: 0, moves: 0, refused: 0, lost: 0, isUnread: false };
      return { id: answer.value, view, lastNode: null, ...counts, wrong: [] };
    }
    await sleep(PAUSE_MS);
  }
  throw new Error(`no ${kind} filter could be made`);
}

/**
 * What decisions/filters.md allows: the node that told it was disturbed before it could note so,
 * the next one could not see that, or waited in vain for the outcome of its answer.
 */
function mayTellAgain({ disturbances }: FilterParts, earlier: Telling, later: Telling): boolean {
  return (
    !disturbances.wasCalm(earlier.node, earlier.sentMs, later.atMs) ||
    !disturbances.wasCalm(later.node, earlier.sentMs, later.atMs) ||
    later.atMs - later.sentMs >= WAITED_MS
  );
}

async function poll(parts: FilterParts, filter: Polled): Promise<void> {
  const node = pick(parts.nodes, parts.random);
  const sentMs = performance.now();
  const answer = await call(parts, node, "eth_getFilterChanges", [filter.id]);
  switch (answer.kind) {
    case "lost":
      filter.lost++;
      filter.isUnread ||= answer.isLate;
      return;
    case "refused":
      filter.refused++;
      if (answer.code === GONE) filter.wrong.push(`${filter.id} is gone at ${node.id}`);
      return;
    case "result": {
      filter.polls++;
      if (filter.lastNode !== null && filter.lastNode !== node.id) filter.moves++;
      filter.lastNode = node.id;
      const items = Array.isArray(answer.value) ? answer.value : [];
      const telling = { node: node.id, sentMs, atMs: performance.now() };
      filter.wrong.push(...filter.view.hear(items, telling));
    }
  }
}

/** Every node hears of the end of a filter within a second. */
async function uninstall(parts: FilterParts, { id }: Polled): Promise<readonly string[]> {
  const answer = await call(parts, pick(parts.nodes, parts.random), "eth_uninstallFilter", [id]);
  if (answer.kind !== "result" || answer.value !== true)
    return [`${id} could not be uninstalled: ${JSON.stringify(answer)}`];
  const found: string[] = [];
  for (const node of parts.nodes) {
    const isGone = async (): Promise<boolean> => {
      const polled = await call(parts, node, "eth_getFilterChanges", [id]);
      return polled.kind === "refused" && polled.code === GONE;
    };
    await until(`the end of ${id}`, isGone).catch(() => found.push(`${id} lives at ${node.id}`));
  }
  return found;
}

const GONE = "filter_not_found";

type Answer =
  | { readonly kind: "result"; readonly value: unknown }
  | { readonly kind: "refused"; readonly code: string }
  /** `isLate` = nothing came in time; otherwise the connection was lost. */
  | { readonly kind: "lost"; readonly isLate: boolean };

async function call(
  { account }: FilterParts,
  node: NodeProcess,
  method: string,
  params: readonly unknown[],
): Promise<Answer> {
  try {
    const response = await fetch(`${node.url}/rpc/k/${account.key}/moving`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const answer: { result?: unknown; error?: { data?: { code?: string }; message?: string } } =
      JSON.parse(await response.text());
    if (answer.error === undefined) return { kind: "result", value: answer.result };
    return { kind: "refused", code: answer.error.data?.code ?? String(answer.error.message) };
  } catch (error) {
    return { kind: "lost", isLate: error instanceof Error && error.name === "TimeoutError" };
  }
}
