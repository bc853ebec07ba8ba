// Classifies one failure of one provider: its category, what routing does next, and the effect on
// health. Applies the table in `category.ts`. Pure: knows neither the other attempts of the request
// nor the clock; the wall time for a `Retry-After` date is an argument.
import { dateMs } from "../calendar.ts";
import type { Effect, Verdict } from "../provider/attempt.ts";
import type { ErrorRule } from "../provider/profile.ts";
import type { BlockRef } from "../rpc/call.ts";
import type { Failure } from "../rpc/failure.ts";
import type { Method } from "../rpc/method.ts";
import { type CategoryDecision, DECISIONS, decisionOf, type ErrorCategory } from "./category.ts";
import type { MethodGroup, Phrase, Rule } from "./rule.ts";
import { RULES } from "./rules.ts";
import { VOCABULARY, type WordFamily } from "./vocabulary.ts";

/** Input of the classification besides the failure. */
export interface ClassifyContext {
  /** As the caller wrote it. */
  readonly methodName: string;
  /** The provider's own rules; they run before the table. */
  readonly rules: readonly ErrorRule[];
  /** Wall clock, milliseconds since the epoch. */
  readonly wallMs: number;
  /**
   * The blocks that the request reads, if known: tells a reversed range from one that is too large.
   */
  readonly block?: BlockRef;
}

/**
 * The category of a failure and its consequences. Never throws; the same input always gives the
 * same verdict.
 */
export function classify(failure: Failure, method: Method, context: ClassifyContext): Verdict {
  const shape = shapeOf(failure, method, context);
  const category =
    operatorCategory(failure, context.rules) ??
    decidingRule(shape, RULES_BY_KIND)?.category ??
    "unknown";
  const [replaySafe, otherwise, effect] = decisionOf(category);
  return {
    category,
    step: method.replaySafe ? replaySafe : otherwise,
    effect: effectOf(effect, shape, context.wallMs),
  };
}

/**
 * The rule of a given table that decides about a failure. Measures how well a part of the table
 * handles shapes that it was not written from.
 */
export function ruleFor(
  failure: Failure,
  method: Method,
  context: ClassifyContext,
  rules: readonly Rule[] = RULES,
): Rule | undefined {
  return decidingRule(
    shapeOf(failure, method, context),
    rules === RULES ? RULES_BY_KIND : byKind(rules),
  );
}

/**
 * Most characters of a message that are read, in UTF-16 units; of `data` fewer, and only near its
 * surface.
 */
const MESSAGE_CHARS = 2_048;
const DATA_CHARS = 512;
const WORDING_CHARS = 512;
const DATA_DEPTH = 3;
const DATA_KEYS = 8;

/** A failure as the rules see it. */
interface Shape {
  readonly failure: Failure;
  readonly groups: ReadonlySet<MethodGroup>;
  readonly reversed: boolean;
  readonly text: string;
  readonly dataText: string;
  /**
   * The text as the word families read it: the called method's own name is replaced by "method",
   * and camel-case names are split.
   */
  readonly wording: Wording;
  readonly dataWording: Wording;
}

const INVALID_PARAMS = -32602;
const QUOTED = /(?<=[\s([=,])(["'])(?:(?!\1)[\s\S]){1,256}\1(?=$|[\s)\],.;:])/g;

/**
 * Removes quoted text, which in errors about parameters repeats the caller's input. A message that
 * is only a quotation is kept.
 */
function withoutQuoted(value: unknown): string {
  const message = bounded(value, MESSAGE_CHARS);
  if (message.startsWith("{")) return message;
  const rest = message.replace(QUOTED, " ");
  return /[a-z]{4}/i.test(rest) ? rest : message;
}

/** Only names of this form are looked for, since a caller may call a method anything. */
const REAL_NAME = /^[a-z][a-z0-9]{1,15}_[a-z]\w{2,63}$/i;

/** A prefix naming the gateway that passed the error on. */
const SPEAKER = /^[\w ]{1,32} (?:said|says|answered|replied): /;

/** A text as the word families read it; prepared on first use. */
class Wording {
  readonly #source: unknown;
  readonly #methodName: string;
  #text: string | null = null;
  /** The families that were looked for so far. */
  readonly #has = new Map<WordFamily, boolean>();

  constructor(source: unknown, methodName: string) {
    this.#source = source;
    this.#methodName = methodName;
  }

  get text(): string {
    this.#text ??= prepared(this.#source, this.#methodName);
    return this.#text;
  }

  /** Whether a word of the family occurs. */
  has(family: WordFamily): boolean {
    const before = this.#has.get(family);
    if (before !== undefined) return before;
    const isFound = VOCABULARY[family].test(this.text);
    this.#has.set(family, isFound);
    return isFound;
  }
}

function shapeOf(failure: Failure, method: Method, { methodName, block }: ClassifyContext): Shape {
  const dataWords = wordsOf(failure.data, DATA_DEPTH);
  const message =
    failure.code === INVALID_PARAMS ? withoutQuoted(failure.message) : failure.message;
  const groups = groupsOf(method, methodName);
  const read = groups.has("logs") ? withBlocks : (text: string) => text;
  return {
    failure,
    groups,
    reversed:
      block?.kind === "range" && block.from !== null && block.to !== null && block.from > block.to,
    text: read(normalise(message, MESSAGE_CHARS).replace(SPEAKER, "")),
    dataText: read(normalise(dataWords, DATA_CHARS)),
    wording: new Wording(message, methodName),
    dataWording: new Wording(dataWords, methodName),
  };
}

/** Chains call blocks by other names; where logs are searched, they mean blocks. */
function withBlocks(text: string): string {
  return text
    .replace(/\b(?:epoch|round|tipset|ledger)(s?)\b/g, "block$1")
    .replace(/\b(from|to|start|end) height(s?)\b/g, "$1 block$2");
}

/** What gateways wrap around an error: JSON members, gRPC's prefix, links to documents. */
const WRAPPING =
  /\b(?:rpc error: )?code = unknown desc =|\brpc error:|["']?\b(?:code|message|data|error|jsonrpc|id|desc)["']? ?[:=] ?(?:-?\d+|null)?|https?:\/\/\S+|^[\w -]{1,32}\b(?:said|says|answered|replied): |\b(?:trace|request|req|correlation|ray)[ _-]?id\b|^\[[^\]]{1,32}\]|\[[^\]]{1,16}\]$/gi;

function prepared(source: unknown, methodName: string): string {
  const bare = bounded(source, WORDING_CHARS).replace(WRAPPING, " ");
  const named = REAL_NAME.test(methodName) ? withMethod(bare, methodName) : bare;
  const text = normalise(named, WORDING_CHARS);
  const apart = named.replace(/([a-z])([A-Z])/g, "$1 $2");
  return apart === named ? text : `${text} ${normalise(apart, WORDING_CHARS)}`;
}

function withMethod(text: string, methodName: string): string {
  return text
    .replace(methodName, isPrefix(text, methodName) ? " " : " method ")
    .replaceAll(methodName, " method ")
    .replaceAll(bareName(methodName), " method ");
}

/** The name without its namespace: "getLogs is limited to …". Names of one word mean too much. */
function bareName(methodName: string): string {
  const bare = methodName.slice(methodName.indexOf("_") + 1);
  return /^[a-z]+[A-Z]/.test(bare) ? bare : methodName;
}

/**
 * Whether the method name is only a prefix: "eth_call: …" or "eth_call failed: …" says what was
 * called, not what the error is about.
 */
function isPrefix(text: string, methodName: string): boolean {
  const at = text.indexOf(methodName);
  const end = at + methodName.length;
  return at >= 0 && at < 24 && /^["'`)\]]? ?(?:failed|error)?:/.test(text.slice(end, end + 12));
}

function operatorCategory(failure: Failure, rules: readonly ErrorRule[]): string | null {
  if (rules.length === 0 || (failure.kind !== "error" && failure.kind !== "body")) return null;
  const message = bounded(failure.message, MESSAGE_CHARS).toLowerCase();
  for (const { code, messageContains, category } of rules) {
    if (code !== null && code !== failure.code) continue;
    if (messageContains.length > 0 && !messageContains.some((part) => message.includes(part)))
      continue;
    if (DECISIONS.has(category)) return category;
  }
  return null;
}

function decidingRule(shape: Shape, rules: RulesByKind): Rule | undefined {
  const rule = firstMatch(shape, rules);
  if (rule === undefined || shape.dataText === "") return rule;
  const isOfAny = shape.groups.has("send") && OF_ANY_TRANSACTION.has(rule.category);
  if (rule.vague !== true && !isOfAny) return rule;
  // The words may be in `data` instead. Those may also be the caller's own, so they never cordon a
  // provider.
  const second = firstMatch(
    { ...shape, text: shape.dataText, dataText: "", wording: shape.dataWording },
    rules,
  );
  if (second === undefined || second.vague === true) return rule;
  const effect = decisionOf(second.category)[2];
  return typeof effect === "object" && effect.kind === "cordon" ? rule : second;
}

/** What nodes say of a transaction in general, with the reason in `data`. */
const OF_ANY_TRANSACTION: ReadonlySet<ErrorCategory> = new Set([
  "server",
  "tx_invalid",
  "invalid_params",
  "underpriced",
]);

/** A rule with its phrases compiled into one expression. */
interface CompiledRule {
  readonly rule: Rule;
  readonly text: RegExp | null;
  readonly data: RegExp | null;
}

type RulesByKind = ReadonlyMap<string, readonly CompiledRule[]>;

const RULES_BY_KIND: RulesByKind = byKind(RULES);

function byKind(rules: readonly Rule[]): RulesByKind {
  const compiled = rules.map(
    (rule): CompiledRule => ({ rule, text: anyOf(rule.text), data: anyOf(rule.data) }),
  );
  return Map.groupBy(compiled, ({ rule }) => rule.kind ?? "error");
}

function anyOf(phrases: readonly Phrase[] | undefined): RegExp | null {
  if (phrases === undefined) return null;
  return new RegExp(
    phrases
      .map((phrase) =>
        typeof phrase === "string" ? RegExp.escape(phrase) : `(?:${phrase.source})`,
      )
      .join("|"),
  );
}

function firstMatch(shape: Shape, rules: RulesByKind): Rule | undefined {
  return rules.get(shape.failure.kind)?.find((compiled) => matches(compiled, shape))?.rule;
}

function matches({ rule, text, data }: CompiledRule, shape: Shape): boolean {
  const { codes, except, status, methods, when, words, without } = rule;
  const { code, httpStatus } = shape.failure;
  if (codes !== undefined && (code === null || !codes.includes(code))) return false;
  if (except !== undefined && code !== null && except.includes(code)) return false;
  if (status !== undefined && (httpStatus < status[0] || httpStatus > status[1])) return false;
  if (methods !== undefined && !methods.some((group) => shape.groups.has(group))) return false;
  if (when !== undefined && !when(shape.text, shape.reversed)) return false;
  if (text !== null && !text.test(shape.text)) return false;
  if (words !== undefined && !words.every((family) => shape.wording.has(family))) return false;
  if (without?.some((family) => shape.wording.has(family)) === true) return false;
  return data === null || data.test(shape.dataText);
}

const EXECUTING: ReadonlySet<string> = new Set(
  (
    "eth_call eth_estimateGas eth_createAccessList eth_simulateV1 eth_callMany debug_traceCall " +
    "debug_traceCallMany trace_call trace_callMany trace_rawTransaction " +
    "eth_estimateUserOperationGas"
  ).split(" "),
);

/**
 * Methods that submit something for execution: `eth_sendRawTransaction` and its counterparts of
 * chains and vendors.
 */
const SENDING = /^(?:eth_send|[a-z0-9]+_send\w*(?:Transaction|UserOperation|Bundle))/;

/** The groups of a method, called by this name. */
export function groupsOf(method: Method, name: string): ReadonlySet<MethodGroup> {
  const groups = new Set<MethodGroup>();
  const { category, block, transaction } = method;
  const executes = EXECUTING.has(name);
  const traces = category === "trace" || category === "debug";
  groups.add(SENDING.test(name) ? "send" : "other");
  if (transaction === "receipt") groups.add("await");
  if (executes) groups.add("execute");
  else if (groups.has("other")) {
    groups.add("inert");
    if (category !== "unknown") groups.add("listed");
  }
  if (category === "logs" || block?.kind === "filter" || name === "eth_getFilterLogs")
    groups.add("logs");
  if (traces) groups.add("traces");
  if (traces && !executes) groups.add("mined");
  if (category === "subscriptions") groups.add("subscriptions");
  if (!groups.has("send") && (category === "state" || category === "core" || category === "logs"))
    groups.add("historic");
  return groups;
}

function bounded(value: unknown, chars: number): string {
  return typeof value === "string" ? value.slice(0, chars) : "";
}

/**
 * Normalises text: lower case; quotes dropped; long hex cut, so that no hash separates two words;
 * white space, `_` and hyphens become one space, except minus signs.
 */
function normalise(value: unknown, chars: number): string {
  const text = bounded(value, chars);
  if (text === "") return "";
  return text
    .toLowerCase()
    .replace(/["'`‘’“”]/g, "")
    .replace(/0x([0-9a-f]{8})[0-9a-f]+/g, "0x$1")
    .replace(/(?:[\s_]|-(?!\d))+/g, " ");
}

/** The strings near the surface of `data`, joined. */
function wordsOf(data: unknown, depth: number): string {
  if (typeof data === "string") return data.slice(0, DATA_CHARS);
  if (typeof data !== "object" || data === null || depth === 0) return "";
  const values: readonly unknown[] = Array.isArray(data) ? data : Object.values(data);
  let words = "";
  let keys = 0;
  for (const value of values) {
    if (++keys > DATA_KEYS || words.length > DATA_CHARS) break;
    const more = wordsOf(value, depth - 1);
    if (more !== "") words += words === "" ? more : ` ${more}`;
  }
  return words;
}

function effectOf(effect: CategoryDecision[2], shape: Shape, wallMs: number): Effect {
  switch (effect) {
    case "cooldown":
      return cooldown(shape, wallMs);
    case "learn_range":
      return {
        kind: "learn",
        what: "range",
        maxBlockRange: rangeIn(shape.text) ?? rangeIn(shape.dataText),
      };
    case "learn_pruned": {
      const oldest = oldestIn(shape.text) ?? oldestIn(shape.dataText);
      return { kind: "learn", what: "pruned", ...(oldest === null ? {} : { oldest }) };
    }
    default:
      return effect;
  }
}

function cooldown(shape: Shape, wallMs: number): Effect {
  const ms = Math.min(
    MAX_COOLDOWN_MS,
    Math.max(MIN_COOLDOWN_MS, Math.round(waitOf(shape, wallMs) ?? DEFAULT_COOLDOWN_MS)),
  );
  return OF_ONE_METHOD.test(shape.wording.text)
    ? { kind: "cooldown", ms, scope: "method" }
    : { kind: "cooldown", ms };
}

/**
 * A text that limits a single method; not one where a gateway only names the call first: "method:
 * rate limit exceeded".
 */
const OF_ONE_METHOD =
  /\b(?:this|trac\w*|debug|heavy|expensive) methods?\b|\bmethods? (?:(?:is|are|was|calls?|requests?|has|have|been|rate|currently) )*(?:limit\w*|throttled|exceed\w*|rate limited|reached)\b|\b(?:limit\w*|rate|quota|exceed\w*|too many|many|throttled|calls?|requests?)\b (?:\w+ ){0,3}?(?:for|on|of|to|by|per|calling) (?:\w+ ){0,2}?methods?\b|\btoo many methods?\b/;

const DEFAULT_COOLDOWN_MS = 30_000;
const MAX_COOLDOWN_MS = 600_000;
/** Least cooldown, used when the provider names no wait or a date just past. */
const MIN_COOLDOWN_MS = 1_000;

/** The wait that the provider names (ms): from the header, else from `data`, else from the text. */
function waitOf({ failure, text, dataText }: Shape, wallMs: number): number | null {
  return (
    retryAfterMs(failure.retryAfter, wallMs) ??
    waitInData(failure.data) ??
    waitInText(text) ??
    waitInText(dataText) ??
    periodInText(text)
  );
}

const HTTP_DATE = /^[a-z]{3}, \d{2} [a-z]{3} \d{4} \d{2}:\d{2}:\d{2} gmt$/i;

function retryAfterMs(value: string | null, wallMs: number): number | null {
  const header = bounded(value, 64).trim();
  if (/^\d{1,12}(?:\.\d{1,9})?$/.test(header)) return Number(header) * 1_000;
  const ms = HTTP_DATE.test(header) ? dateMs(header) - wallMs : Number.NaN;
  return Number.isNaN(ms) ? null : ms;
}

const SECONDS_FIELDS = ["backoff_seconds", "retry_after_seconds", "retry_after", "retryAfter"];

function waitInData(data: unknown): number | null {
  for (const place of [field(data, "rate"), data]) {
    for (const name of SECONDS_FIELDS) {
      const seconds = field(place, name);
      if (typeof seconds === "number" && seconds >= 0) return seconds * 1_000;
    }
    const ms = field(place, "retry_after_ms");
    if (typeof ms === "number" && ms >= 0) return ms;
  }
  return null;
}

function field(data: unknown, name: string): unknown {
  return typeof data === "object" && data !== null && Object.hasOwn(data, name)
    ? Object.getOwnPropertyDescriptor(data, name)?.value
    : undefined;
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1_000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);
const PART =
  /(\d{1,9}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)(?![a-z])/g;
const WAIT =
  /\b(?:retry|retrying|try again|wait|back ?off|resets?|resume|available)\b[^0-9]{0,32}((?:\d{1,9}(?:\.\d{1,9})? ?(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h)(?![a-z]) ?){1,4})/;
const PERIOD =
  /\b\d[\d,]{0,11} ?(?:requests? |calls? |reqs? )?(?:\/|per |an? |in (?:an? |1 )?) ?(seconds?|secs?|s|minutes?|mins?|m|hours?|h|days?|d)\b/;

/** The wait (ms) in texts such as "try again in 4m40.2s" or "please wait 23 seconds". */
function waitInText(text: string): number | null {
  const named = WAIT.exec(text)?.[1];
  if (named === undefined) return null;
  let ms = 0;
  for (const [, amount, unit = ""] of named.matchAll(PART)) ms += Number(amount) * unitMs(unit);
  return ms;
}

/** The window (ms) that a limit counts in, from texts such as "15/second request limit reached". */
function periodInText(text: string): number | null {
  const unit = PERIOD.exec(text)?.[1];
  return unit === undefined ? null : unitMs(unit);
}

function unitMs(unit: string): number {
  if (unit.startsWith("milli")) return 1;
  return UNIT_MS.get(unit) ?? UNIT_MS.get(unit.charAt(0)) ?? 1_000;
}

const LIMIT =
  /\b(?:max(?:imum)?|limit(?:ed)?|up to|at most|over|exceeds?|greater than|larger than|bigger than|smaller than|less than|more than|within)\b[^0-9/.]{0,48}(?<![-\dx.])(?:0(?: ?- ?| to | ))?(\d{1,3}(?:,\d{3}){1,3}|\d{1,10})(k)?(?![\dxk]|[.,]\d)(?! ?(?:results|logs|bytes|[km]b\b|seconds|secs|s\b|ms\b|requests|addresses|topics|%))/g;
const COMPARED = /\b\d[\d,]{0,12} ?> ?(\d[\d,]{0,12})/;

/**
 * The largest block range that the text allows; null = it names none. Of several numbers the
 * smallest, which no reading of the text forbids.
 */
function rangeIn(text: string): number | null {
  const compared = COMPARED.exec(text)?.[1];
  if (compared !== undefined) return asRange(compared, undefined);
  let least: number | null = null;
  for (const [, digits = "", thousand] of text.matchAll(LIMIT)) {
    const range = asRange(digits, thousand);
    if (range !== null && (least === null || range < least)) least = range;
  }
  return least;
}

function asRange(digits: string, thousand: string | undefined): number | null {
  const range = Number(digits.replaceAll(",", "")) * (thousand === undefined ? 1 : 1_000);
  return range >= 1 && range <= 1_000_000_000 ? range : null;
}

const OLDEST =
  /\b(?:(?:oldest|earliest|lowest|first)\b(?: (?:available|known|stored|supported|block|height|number|state|history|is|at|of)\b)*|available (?:from|since|starting (?:at|from))(?: (?:block|height|number))*)[ :=#]{1,3}(0x[0-9a-f]{1,12}|\d{1,15})\b/;

/** The oldest block that the text says is left; null = it names none. */
function oldestIn(text: string): number | null {
  const named = OLDEST.exec(text)?.[1];
  return named === undefined ? null : Number(named);
}
