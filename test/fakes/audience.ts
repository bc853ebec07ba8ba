// A subscriber that knows the truth: checks everything it is told against the simulated chain
// itself. Knows no provider and no service.
import type { Subscription } from "../../src/core/stream/subscription.ts";
import {
  type Blooms,
  type ChainBlock,
  type ChainFilter,
  type FakeChain,
  headerText,
  logText,
  wanted,
} from "./chain.ts";

/** Hears one subscription and complains. */
export interface Audience {
  started(): void;
  events(results: readonly Buffer[]): void;
  /** It has left, was refused or was ended: it must hear nothing any more. */
  over(): void;
  isStarted(): boolean;
  /** Nothing more is to come: it must have been told everything. */
  settled(): void;
}

/** What an audience works with. */
export interface AudienceParts {
  readonly chain: FakeChain;
  readonly subscription: Subscription;
  /** Height at which the subscription stands now. */
  readonly height: () => number;
  readonly fail: (what: string) => never;
}

/** The audience for a kind of subscription. */
export function chainAudience(parts: AudienceParts): Audience {
  const ear = earFor(parts);
  let state: "waiting" | "started" | "over" = "waiting";
  return {
    started() {
      if (state !== "waiting") parts.fail(`started while ${state}`);
      state = "started";
      ear.begin(parts.height());
    },
    events(results) {
      if (state !== "started") parts.fail(`told while ${state}`);
      if (results.length === 0) parts.fail("told nothing");
      for (const raw of results) ear.hear(raw.toString());
    },
    over() {
      state = "over";
    },
    isStarted: () => state === "started",
    settled: () => ear.settle(),
  };
}

/** What headers may look like, whatever they say of their logs. */
const SHAPES: readonly Blooms[] = ["true", "left out", "zero", "false", "full"];

interface Ear {
  begin(height: number): void;
  hear(text: string): void;
  settle(): void;
}

function earFor(parts: AudienceParts): Ear {
  switch (parts.subscription.kind) {
    case "newHeads":
      return headEar(parts);
    case "logs":
      return logEar(parts);
    case "newPendingTransactions":
    case "syncing":
    case "vendor":
      return looseEar(parts);
  }
}

function headEar({ chain, fail }: AudienceParts): Ear {
  let startHeight = 0;
  let view: ChainBlock[] = [];
  return {
    begin(height) {
      startHeight = height;
    },
    hear(text) {
      const block =
        chain.byHash(JSON.parse(text).hash) ?? fail(`told of a head that is no block: ${text}`);
      if (!SHAPES.some((it) => text === headerText(block, it)))
        fail(`head ${block.number} is not in the live shape: ${text}`);
      const [first] = view;
      if (first === undefined && block.number > startHeight + 1)
        fail(`begins with ${block.number} behind ${startHeight}`);
      if (first === undefined || block.number <= first.number) view = [];
      else if (view[block.number - 1 - first.number]?.hash !== block.parentHash)
        fail(`head ${block.number} does not follow what was told`);
      else if (view[block.number - first.number]?.hash === block.hash)
        fail(`head ${block.number} is told twice`);
      view = [...view.slice(0, Math.max(0, block.number - (first?.number ?? 0))), block].slice(
        -500,
      );
    },
    settle() {
      const tip = chain.tip();
      const last = view.at(-1);
      if (last === undefined ? tip.number > startHeight : last !== tip)
        fail(`ends at ${last?.number} ${last?.hash}, and the chain at ${tip.number} ${tip.hash}`);
      for (const block of view)
        if (block.number > startHeight && chain.at(tip, block.number) !== block)
          fail(`block ${block.number} is not on the chain`);
      const [first] = view;
      if (view.length < 500 && first !== undefined && first.number > startHeight + 1)
        fail(`misses blocks before ${first.number}`);
    },
  };
}

interface Told {
  readonly key: string;
  readonly number: number;
  readonly index: number;
}

function logEar({ chain, subscription, fail }: AudienceParts): Ear {
  const [, filter = {}]: [string, ChainFilter?] = JSON.parse(subscription.params);
  let startHeight = 0;
  let told: Told[] = [];
  return {
    begin(height) {
      startHeight = height;
    },
    hear(text) {
      const { blockHash, logIndex, removed } = JSON.parse(text);
      const block = chain.byHash(blockHash) ?? fail(`told of a log of no block: ${text}`);
      const log =
        wanted(block, filter).find((it) => it.index === Number(logIndex)) ??
        fail(`told of a log that was not wanted: ${text}`);
      if (text !== logText(block, log, removed)) fail(`a log was changed: ${text}`);
      const key = `${block.hash} ${log.index}`;
      const known = told.some((it) => it.key === key);
      const name = `log ${log.index} of block ${block.number} ${block.hash.slice(-4)}`;
      if (removed === true) {
        // What was told before it joined may be taken back from everybody.
        if (!known && block.number > startHeight) fail(`${name} is taken back and was never told`);
        told = told.filter((it) => it.key !== key);
        return;
      }
      if (known) fail(`${name} is told twice`);
      const last = told.at(-1);
      if (
        last !== undefined &&
        (last.number > block.number || (last.number === block.number && last.index >= log.index))
      )
        fail(
          `${name} is told after log ${last.index} of block ${last.number} ` +
            `${last.key.slice(62, 66)}`,
        );
      told.push({ key, number: block.number, index: log.index });
    },
    settle() {
      const tip = chain.tip();
      const keys = new Set(told.map((it) => it.key));
      for (const it of told)
        if (chain.at(tip, it.number)?.hash !== it.key.split(" ")[0])
          fail(`a log of block ${it.number} was never taken back`);
      for (let number = startHeight + 1; number <= tip.number; number++) {
        const block = chain.at(tip, number) ?? fail("the chain has a hole");
        for (const log of wanted(block, filter))
          if (!keys.has(`${block.hash} ${log.index}`))
            fail(`log ${log.index} of block ${number} ${block.hash.slice(-4)} was never told`);
      }
    },
  };
}

function looseEar({ fail }: AudienceParts): Ear {
  const told = new Set<string>();
  return {
    begin() {},
    hear(text) {
      if (told.has(text)) fail(`${text} is told twice`);
      told.add(text);
    },
    settle() {},
  };
}
