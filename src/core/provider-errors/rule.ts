// The shape of an error rule, and the words in which the tables of rules are written: `rule` and
// `family` make one, the constants say where it applies. Knows no single error.
import type { Failure } from "../rpc/failure.ts";
import type { ErrorCategory } from "./category.ts";
import type { WordFamily } from "./vocabulary.ts";

/**
 * Groups of methods for which the same words mean different things. `send`: submits a transaction;
 * `await`: waits for its receipt as well; `other`: does not submit one. `inert`: neither submits
 * nor executes. `execute`: simulates a transaction. `logs`: searches logs by block range. `traces`:
 * any tracer; `mined`: a tracer of mined transactions. `historic`: reads state, blocks or logs.
 * `listed`: inert, and in the method table, so that an answer that repeats the method's name
 * repeats no words that the caller chose.
 */
export type MethodGroup =
  | "send"
  | "await"
  | "execute"
  | "logs"
  | "traces"
  | "mined"
  | "subscriptions"
  | "historic"
  | "other"
  | "inert"
  | "listed";

/**
 * A substring or expression to match in the normalised text: lower case, quotes dropped; white
 * space, `_` and hyphens (except minus signs) are one space.
 */
export type Phrase = string | RegExp;

/** Where a rule applies. All members that are present must hold; of several groups any one. */
export interface RuleScope {
  /** Default: `error`. */
  readonly kind?: Failure["kind"];
  readonly codes?: readonly number[];
  /** Codes that exclude a match. */
  readonly except?: readonly number[];
  /** HTTP statuses, inclusive. */
  readonly status?: readonly [from: number, to: number];
  readonly methods?: readonly MethodGroup[];
  readonly data?: readonly Phrase[];
  /** Word families of which none may occur in the text. */
  readonly without?: readonly WordFamily[];
  /** Vague by itself: a match of a more specific rule in `data` takes precedence. */
  readonly vague?: true;
  /** What else must hold of the text, and of whether the block range of the request is reversed. */
  readonly when?: (text: string, isReversed: boolean) => boolean;
}

/** One shape of failure, and the category that it belongs to. */
export interface Rule extends RuleScope {
  readonly category: ErrorCategory;
  /** Any one of them must match the text. */
  readonly text?: readonly Phrase[];
  /** Word families that must all occur in the text. */
  readonly words?: readonly WordFamily[];
}

/** A rule by phrases, or by its condition alone. */
export function rule(category: ErrorCategory, where: RuleScope, text?: readonly Phrase[]): Rule {
  return text === undefined ? { category, ...where } : { category, ...where, text };
}

/** A rule by word families: all of `words`, none of `without`. */
export function family(
  category: ErrorCategory,
  where: RuleScope,
  words: readonly WordFamily[],
  without: readonly WordFamily[] = [],
): Rule {
  return { category, ...where, words, without };
}

/** A body that is no JSON-RPC answer, with an HTTP status between these. */
export function body(from: number, to = from): RuleScope {
  return { kind: "body", status: [from, to] };
}

/** A JSON-RPC error with an HTTP status between these. */
export function status(from: number, to = from): RuleScope {
  return { status: [from, to] };
}

export const ANY: RuleScope = { kind: "error" };
export const VAGUE: RuleScope = { vague: true };
/**
 * Not under the code of invalid parameters, whose message may echo what the caller sent: never read
 * as a refusal before the words were found to be about parameters.
 */
export const UNECHOED: RuleScope = { except: [-32602] };

export const LOGS: RuleScope = { methods: ["logs"] };
export const SEND: RuleScope = { methods: ["send"] };
export const EXECUTE: RuleScope = { methods: ["execute"] };
export const TRANSACTION: RuleScope = { methods: ["send", "execute"] };
export const TRACES: RuleScope = { methods: ["traces"] };
export const SUBSCRIPTIONS: RuleScope = { methods: ["subscriptions"] };
/** Methods that submit no transaction. */
export const OTHER: RuleScope = { methods: ["other"] };
/**
 * Methods that neither submit a transaction nor execute the caller's code: their answers cannot
 * contain text of a contract.
 */
export const INERT: RuleScope = { methods: ["inert"] };

const GOT_EXPECTED =
  /\b(?:nonce|sequence)\b.{0,48}?\b(?:got|received|actual|have|given)\b\D{0,12}(\d{1,15})\b.{0,24}?\b(?:expected|expects|want|wanted|needed)\b\D{0,12}(\d{1,15})/;
const EXPECTED_GOT =
  /\b(?:expected|expects|want|wanted|needed)\b\D{0,24}(\d{1,15})\b.{0,24}?\b(?:got|received|actual|have|given|but)\b\D{0,12}(\d{1,15})/;

/** "got 9, expected 8": a nonce from the future. */
export function isAheadOfExpected(text: string): boolean {
  if (!/nonce|sequence/.test(text) || /too (?:low|small|old)/.test(text)) return false;
  const [, got, wanted] = GOT_EXPECTED.exec(text) ?? [];
  if (got !== undefined) return Number(got) > Number(wanted);
  const [, expected, given] = EXPECTED_GOT.exec(text) ?? [];
  return expected !== undefined && Number(given) > Number(expected);
}

const PAGE = /<(?:!doctype html|html|head|body|title|center|h1)\b/;

/** Pages speak of many things at once. */
export const NO_PAGE: RuleScope = { when: (text) => !PAGE.test(text) };

const HEIGHT_REQUESTED =
  /\b(?:height|head|latest(?: block)?|current(?: block)?)\b\D{0,16}(\d{1,15})\b.{0,24}?\brequested\b(?: (?:was|is|block|height))*:? ?#?(\d{1,15})\b/;

/** "height is 9 but requested was 5": a block that the node had, and keeps no longer. */
export function isBelowHeight(text: string): boolean {
  const [, height, requested] = HEIGHT_REQUESTED.exec(text) ?? [];
  return height !== undefined && Number(requested) < Number(height);
}
