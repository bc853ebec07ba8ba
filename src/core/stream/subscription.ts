// What a caller subscribes to: kind and filter, validated and normalised, so that equal
// subscriptions have equal texts. Pure.
import { isRecord } from "../fields.ts";

/** The kinds of subscription that are served. */
export const SUBSCRIPTION_KINDS = [
  "newHeads",
  "logs",
  "newPendingTransactions",
  "syncing",
] as const;

/**
 * The kinds in metrics. `vendor` stands for all kinds of vendors, whose events are passed on
 * unchanged.
 */
export const COUNTED_KINDS = [...SUBSCRIPTION_KINDS, "vendor"] as const;

/** One of the kinds as they are counted. */
export type SubscriptionKind = (typeof COUNTED_KINDS)[number];

/**
 * Names of kinds that vendors serve. Sources: Base (flashblocks), Monad, Alchemy, dRPC. A provider
 * that does not know one refuses it.
 */
export const VENDOR_KINDS: readonly string[] = [
  "newFlashblocks",
  "newFlashblockTransactions",
  "pendingLogs",
  "monadNewHeads",
  "monadLogs",
  "alchemy_minedTransactions",
  "alchemy_pendingTransactions",
  "drpc_pendingTransactions",
];

/** The kinds that are polled over HTTP when no provider has a socket. */
export const POLLED_KINDS: readonly SubscriptionKind[] = ["newHeads", "logs"];

/**
 * The filter of a `logs` subscription, normalised: lower case, lists sorted without duplicates, no
 * trailing empty topics.
 */
export interface LogFilter {
  /** Empty = any. */
  readonly addresses: readonly string[];
  /** By position; an empty list = any. */
  readonly topics: readonly (readonly string[])[];
}

/** Matches every log. */
export const ALL_LOGS: LogFilter = { addresses: [], topics: [] };

/** The block range of a filter, both ends included; null = no bound. */
export interface BlockBounds {
  readonly from: number | null;
  readonly to: number | null;
}

/** A normalised subscription. */
export interface Subscription {
  readonly kind: SubscriptionKind;
  /**
   * The parameters of `eth_subscribe` as a normalised JSON array: sent upstream, and the key under
   * which equal subscriptions share a stream.
   */
  readonly params: string;
  /** Only of `logs`. */
  readonly filter: LogFilter | null;
  /**
   * Only of `logs` with a block range. Never sent upstream, so that callers with different ranges
   * share one stream.
   */
  readonly bounds: BlockBounds | null;
}

/** Invalid parameters; `message` says what is allowed. */
export interface InvalidSubscription {
  readonly kind: "invalid";
  readonly message: string;
}

const MAX_ADDRESSES = 1_000;
const MAX_TOPICS = 4;
const MAX_TOPIC_CHOICES = 1_000;
/** Of the parameters of a vendor's kind, as JSON: enough for a thousand addresses. */
const MAX_VENDOR_CHARS = 65_536;

/** Enough for the most addresses and topics. Reading millions of names would hold up everybody. */
const MAX_PARAMS_CHARS = 500_000;
const BOUND = `, of at most ${MAX_PARAMS_CHARS} characters`;

/** The parameters in the text of a call, null where they are too long; without a text none. */
export function subscriptionParams(text: string | null): unknown {
  if (text === null) return [];
  return text.length > MAX_PARAMS_CHARS ? null : JSON.parse(text);
}

/**
 * Parses the parameters of `eth_subscribe`. `further`: names that are passed on as vendors' are.
 */
export function readSubscription(
  params: unknown,
  further: readonly string[] = [],
): Subscription | InvalidSubscription {
  if (!Array.isArray(params) || params.length === 0)
    return invalid(
      `params must be an array that begins with one of ${SUBSCRIPTION_KINDS.join(", ")}${BOUND}`,
    );
  const [name, option, ...rest]: unknown[] = params;
  const kind = SUBSCRIPTION_KINDS.find((kind) => kind === name);
  const isVendors =
    typeof name === "string" && (VENDOR_KINDS.includes(name) || further.includes(name));
  if (kind === undefined && isVendors) return readVendor(params);
  if (kind === undefined)
    return invalid(`there is no such subscription; use one of ${SUBSCRIPTION_KINDS.join(", ")}`);
  if (rest.length > 0) return invalid(`${kind} takes at most one option`);
  switch (kind) {
    case "logs":
      return readLogs(option ?? {});
    case "newPendingTransactions":
      if (!isAbsent(option) && typeof option !== "boolean")
        return invalid(
          "the option of newPendingTransactions is true for whole transactions, or false",
        );
      return plain(kind, option === true ? `["${kind}",true]` : `["${kind}"]`);
    case "newHeads":
    case "syncing":
      return isAbsent(option) ? plain(kind, `["${kind}"]`) : invalid(`${kind} takes no option`);
  }
}

/** What only its vendor can read. */
function readVendor(given: readonly unknown[]): Subscription | InvalidSubscription {
  const params = JSON.stringify(given);
  return params.length > MAX_VENDOR_CHARS
    ? invalid(`params may have ${MAX_VENDOR_CHARS} characters`)
    : plain("vendor", params);
}

/** A subscription that filters no logs. */
function plain(kind: SubscriptionKind, params: string): Subscription {
  return { kind, params, filter: null, bounds: null };
}

/** The parameters of `eth_getLogs` that query the logs of one block that match a filter. */
export function logsOfBlock(filter: LogFilter, blockHash: string): string {
  return JSON.stringify([{ blockHash, ...shown(filter) }]);
}

/**
 * Parses the parameters of `eth_newFilter`. `query`: the parameters of `eth_getLogs` that query the
 * same logs in history, as a JSON array.
 */
export function readCriteria(params: unknown) {
  if (!Array.isArray(params) || params.length > 1)
    return invalid(`params must be an array with one object of criteria${BOUND}`);
  const [given]: unknown[] = params;
  const option = given ?? {};
  const subscription = readLogs(option);
  if (subscription.kind === "invalid" || !isRecord(option))
    return invalid(subscription.kind === "invalid" ? subscription.message : NO_OBJECT);
  const { fromBlock, toBlock, address, topics } = option;
  const query = JSON.stringify([{ fromBlock, toBlock, address, topics }]);
  return { kind: "criteria", subscription, query } as const;
}

/** Whether a block is within the bounds. */
export function isWithin({ from, to }: BlockBounds, blockNumber: number): boolean {
  return (from === null || blockNumber >= from) && (to === null || blockNumber <= to);
}

const NO_OBJECT = "the option of logs is an object with address and topics";
const MEMBERS: ReadonlySet<string> = new Set(["address", "topics", "fromBlock", "toBlock"]);

function readLogs(option: unknown): Subscription | InvalidSubscription {
  if (!isRecord(option)) return invalid(NO_OBJECT);
  const { address = null, topics = null, fromBlock, toBlock } = option;
  const other = Object.keys(option).find((name) => !MEMBERS.has(name) && option[name] !== null);
  if (other !== undefined)
    return invalid(
      "logs are told as blocks come, by address, topics, fromBlock and toBlock: leave " +
        `${other.slice(0, 40)} out, or use eth_getLogs`,
    );
  const addresses = address === null ? [] : choices(address, ADDRESS, MAX_ADDRESSES);
  if (addresses === null)
    return invalid(`address must be an address of 20 bytes, or a list of at most ${MAX_ADDRESSES}`);
  const positions = topics === null ? [] : readTopics(topics);
  if (positions === null)
    return invalid(
      `topics must be a list of at most ${MAX_TOPICS}: null, a topic of 32 bytes, or a list of ` +
        "topics",
    );
  const bounds = readBounds(fromBlock, toBlock);
  if (typeof bounds === "string") return invalid(bounds);
  const filter = { addresses, topics: positions };
  return { kind: "logs", params: JSON.stringify(["logs", shown(filter)]), filter, bounds };
}

const ADDRESS = /^0x[0-9a-fA-F]{40}$/;
const TOPIC = /^0x[0-9a-fA-F]{64}$/;
/** Up to 64 bits: many clients write the largest number for "no end". */
const BLOCK_NUMBER = /^0x[0-9a-fA-F]{1,16}$/;

/**
 * The bounds of live logs, as geth reads them; a text = they are invalid, and why. Sources: geth
 * `eth/filters`, `SubscribeLogs` and `filterLogs`.
 */
function readBounds(fromBlock: unknown, toBlock: unknown): BlockBounds | string | null {
  const from = fromBlock === "earliest" ? 0 : readBound(fromBlock);
  const to = readBound(toBlock);
  if (from === undefined || to === undefined)
    return (
      "fromBlock and toBlock must be block numbers as hex quantities, or latest: pending, safe " +
      "and finalized blocks bring no live logs"
    );
  if (to !== null && from === null)
    return "a toBlock that is a number needs a fromBlock that is one";
  if (from !== null && to !== null && from > to)
    return "fromBlock must not be greater than toBlock";
  return (from ?? 0) === 0 && to === null ? null : { from, to };
}

/** Parses one bound: null = the newest block, undefined = neither a number nor that. */
function readBound(value: unknown): number | null | undefined {
  if (value === undefined || value === null || value === "latest") return null;
  return typeof value === "string" && BLOCK_NUMBER.test(value) ? Number(value) : undefined;
}

function readTopics(value: unknown): string[][] | null {
  if (!Array.isArray(value) || value.length > MAX_TOPICS) return null;
  const positions = value.map((position: unknown) =>
    position === null ? [] : choices(position, TOPIC, MAX_TOPIC_CHOICES),
  );
  const known = positions.filter((position) => position !== null);
  if (known.length < positions.length) return null;
  while (known.at(-1)?.length === 0) known.pop();
  return known;
}

/** Parses one value or a list of values; a null in a list of topics means any, as nodes read it. */
function choices(value: unknown, shape: RegExp, most: number): string[] | null {
  const list: unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > most) return null;
  if (shape === TOPIC && list.includes(null)) return [];
  const texts = list.filter(
    (choice): choice is string => typeof choice === "string" && shape.test(choice),
  );
  return texts.length < list.length
    ? null
    : [...new Set(texts.map((text) => text.toLowerCase()))].sort();
}

/** A filter as the JSON members of `eth_getLogs`. */
function shown({ addresses, topics }: LogFilter) {
  return {
    ...(addresses.length === 0 ? {} : { address: oneOrMore(addresses) }),
    ...(topics.length === 0
      ? {}
      : { topics: topics.map((topic) => (topic.length === 0 ? null : oneOrMore(topic))) }),
  };
}

function oneOrMore(list: readonly string[]): string | readonly string[] {
  return list.length === 1 ? (list[0] ?? "") : list;
}

function isAbsent(value: unknown): boolean {
  return (
    value === undefined || value === null || (isRecord(value) && Object.keys(value).length === 0)
  );
}

function invalid(message: string): InvalidSubscription {
  return { kind: "invalid", message };
}
