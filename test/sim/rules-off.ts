// Rules of what may be kept, told and joined, each with the change to the source that switches it
// off: the oracle has to find what follows. Changes no file: the text is replaced as it is loaded.
import { registerHooks } from "node:module";
import type { Finding } from "./answer-oracle.ts";
import type { WorldName } from "./faulty-worlds.ts";

/** A rule, how it is switched off, and where that shows. */
export interface Rule {
  /** Its place in the specification, and in a few words. */
  readonly name: string;
  /** Below `src/`. */
  readonly file: string;
  readonly edits: readonly Edit[];
  /** The world that tries it, and what is found there without it. */
  readonly world: WorldName;
  readonly shows: Finding;
  /** Whether it shows within seconds on the real service as well. */
  readonly isLive?: true;
}

/** Text of the source, which occurs once, and what stands for it. */
interface Edit {
  readonly from: string;
  readonly to: string;
}

const TERMS = "core/routing/cache-terms.ts";
const FAILOVER = "upstream/engine/attempts/failover.ts";
const RANGES = "upstream/engine/ranges/range-run.ts";
const RECHECK = "upstream/engine/layers/null-answers.ts";
const PLANS = "upstream/health/plans.ts";
const RECORDS = "upstream/health/provider-records.ts";

/** The rules. */
export const RULES: readonly Rule[] = [
  {
    name: "11.23 its provider had the block, 3 behind",
    file: TERMS,
    edits: [{ from: "|| provider.highestBefore < number ||", to: "||" }],
    world: "3 behind",
    shows: "wrong",
  },
  {
    name: "11.23 its provider had the block, 63 behind",
    file: TERMS,
    edits: [{ from: "|| provider.highestBefore < number ||", to: "||" }],
    world: "63 behind",
    shows: "wrong",
  },
  {
    name: "11.23 nothing disputed",
    file: TERMS,
    edits: [
      {
        from: "provider.highestBefore < number || now.isDisputed(number)",
        to: "provider.highestBefore < number",
      },
      {
        from: "return own === null || own === now.agreedHash(number);",
        to: "return own !== undefined;",
      },
    ],
    world: "forks",
    shows: "wrong",
  },
  {
    name: "11.23 unnamed only after a block time",
    file: TERMS,
    edits: [{ from: "|| now.agreedMs(number, agreed) < blockTimeMs)", to: ")" }],
    world: "answers trail",
    shows: "wrong",
  },
  {
    name: "11.23 unnamed asked anew once final",
    file: TERMS,
    edits: [
      {
        from: "const settles = provider.highestBefore >= number + finalityDepth;",
        to: "const settles = finalityDepth > 0;",
      },
    ],
    world: "answers trail far",
    shows: "wrong",
  },
  {
    name: "11.23 null is never kept",
    file: TERMS,
    edits: [{ from: "if (answer.isNull || (", to: "if ((" }],
    world: "answers trail far",
    shows: "null",
  },
  {
    name: "11.24 held against the question",
    file: FAILOVER,
    edits: [
      {
        from: "if (why === null) return null;\n    const operator",
        to: "if (why !== undefined) return null;\n    const operator",
      },
    ],
    world: "usual",
    shows: "wrong",
    isLive: true,
  },
  {
    name: "11.24 what two contradict alike is not kept",
    file: FAILOVER,
    edits: [{ from: "      this.#context.isContradicted = true;\n", to: "" }],
    world: "lie alike",
    shows: "wrong",
    isLive: true,
  },
  {
    name: "11.25 those that reach the end first",
    file: PLANS,
    edits: [
      { from: "if (!isThere) return all;", to: "if (isThere || !isThere) return all;" },
      { from: ': presence === "lacks"),', to: ": false)," },
    ],
    world: "usual",
    shows: "short",
  },
  {
    name: "11.25 the end of those who have it",
    file: RANGES,
    edits: [
      { from: 'this.#pin(typeof to === "number" ? hexOf(to) : to);', to: 'this.#pin("latest");' },
    ],
    world: "parts",
    shows: "short",
  },
  {
    name: "11.25 parts whose end was there before, on the same branch",
    file: RANGES,
    edits: [{ from: "&& hadEnd(result, before, chain);", to: ";" }],
    world: "late parts",
    shows: "wrong",
  },
  {
    name: "11.25 known by its hash, not by its number alone",
    file: RANGES,
    edits: [{ from: "if (linked === null) return true;", to: "if (linked !== hash) return true;" }],
    world: "late parts",
    shows: "wrong",
  },
  {
    name: "11.26 null is asked again",
    file: RECHECK,
    edits: [{ from: "isMissing ? this.#secondCall(answer) : null;", to: "null;" }],
    world: "usual",
    shows: "null",
  },
  {
    name: "11.26 only fruitless ones count",
    file: RECHECK,
    edits: [
      {
        from: "if (isFound) this.context.request.tracker.rechecks.giveBack(",
        to: "if (Number.isNaN(1)) this.context.request.tracker.rechecks.giveBack(",
      },
      {
        from: "else if (!hasAnswer) return;\n    else if (this.#taken.isOld)",
        to: "if (this.#taken.isOld)",
      },
    ],
    world: "polled far",
    shows: "null",
  },
  {
    name: "11.26 whoever has the highest head first",
    file: RECHECK,
    edits: [{ from: ", prefer: ahead.best };", to: " };" }],
    world: "polled far",
    shows: "null",
  },
  {
    name: "11.26 who told is asked",
    file: RECHECK,
    edits: [
      {
        from: "const known = memory.providerOf(key, nowMs);",
        to: "const known = memory.providerOf(key.slice(1), nowMs);",
      },
    ],
    world: "polled",
    shows: "told, then null",
  },
  {
    name: "11.26 answers raise heads",
    file: FAILOVER,
    edits: [{ from: "if (number !== null) tracker.namedBlock(provider, number);", to: "" }],
    world: "polled",
    shows: "null",
  },
  {
    name: "11.26 sockets that trail vouch for nothing",
    file: RECORDS,
    edits: [
      { from: "if (state.pollsAhead === POLLS_AHEAD) this.blocks.clear(state);", to: "" },
      { from: "if (state.pollsAhead === POLLS_AHEAD) return;", to: "" },
    ],
    world: "pushes trail",
    shows: "wrong",
  },
];

/** Switches a rule off for modules that are loaded from now on. */
export function switchOff({ file, edits }: Rule): void {
  registerHooks({
    load(url, context, next) {
      const loaded = next(url, context);
      if (!url.split("?")[0]?.endsWith(`/src/${file}`)) return loaded;
      return { ...loaded, source: edited(String(loaded.source), edits) };
    },
  });
}

/** The text with the edits; throws where one of them does not fit. */
export function edited(text: string, edits: readonly Edit[]): string {
  return edits.reduce((source, { from, to }) => {
    const parts = source.split(from);
    if (parts.length !== 2) throw new Error(`stands ${parts.length - 1} times: ${from}`);
    return parts.join(to);
  }, text);
}
