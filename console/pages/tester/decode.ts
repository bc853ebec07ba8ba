// Answers of EVM methods as a reader tells them: quantities in decimals, amounts, times, addresses
// in words, known events, and the reasons of reverts. By the names of fields, so that blocks,
// transactions, receipts and logs need no form of their own. Pure; what is long is cut.

import { listIn, memberOf } from "../../api/json.ts";

/** A value: one line, or the named parts of it. */
export type Decoded = string | readonly DecodedPart[];
export type DecodedPart = readonly [name: string, value: Decoded];

const MAX_ITEMS = 25;
const MAX_DEPTH = 6;
const WORD_CHARS = 64;
const ADDRESS_CHARS = 40;
const GWEI_PLACES = 9;
const ETHER_PLACES = 18;

const QUANTITY = /^0x(0|[1-9a-f][0-9a-f]{0,63})$/i;
const whole = new Intl.NumberFormat("en");

/** The result of a method; null = raw JSON says it best. */
export function decodeResult(method: string, result: unknown): Decoded | null {
  if (method === "eth_syncing" && result === false) return "In step with the chain";
  if (typeof result === "string") return decodeText(method, result);
  if (result === null) return "Nothing: it does not exist, or is not known yet";
  return typeof result === "object" ? partsOf(result, 0) : null;
}

function decodeText(method: string, text: string): Decoded | null {
  if (method === "eth_call" || method === "eth_getStorageAt")
    return revertReason(text) ?? words(text);
  if (method === "eth_getCode")
    return text === "0x"
      ? "No code: not a contract"
      : `${whole.format((text.length - 2) / 2)} bytes`;
  const kind = METHOD_KINDS[method] ?? "count";
  return QUANTITY.test(text) ? quantity(kind, text) : null;
}

type Kind = "count" | "wei" | "gas price" | "time";

const METHOD_KINDS: Readonly<Record<string, Kind>> = {
  eth_getBalance: "wei",
  eth_gasPrice: "gas price",
  eth_maxPriorityFeePerGas: "gas price",
  eth_blobBaseFee: "gas price",
};

/** Fields that hold other quantities than counts. */
const FIELD_KINDS: Readonly<Record<string, Kind>> = {
  value: "wei",
  amount: "count",
  timestamp: "time",
  blockTimestamp: "time",
  gasPrice: "gas price",
  effectiveGasPrice: "gas price",
  baseFeePerGas: "gas price",
  maxFeePerGas: "gas price",
  maxPriorityFeePerGas: "gas price",
  maxFeePerBlobGas: "gas price",
  blobGasPrice: "gas price",
};

/** Fields whose hexadecimal digits are no number. */
const OPAQUE = /hash|root|bloom|data|input|topic|nonce|^[rsv]$|parity|address|^(from|to|miner)$/i;

function quantity(kind: Kind, text: string): string {
  const value = BigInt(text);
  if (kind === "gas price") return `${decimal(value, GWEI_PLACES)} gwei`;
  if (kind === "wei")
    return `${decimal(value, ETHER_PLACES)} of the chain's currency (${whole.format(value)} wei)`;
  if (kind === "count") return whole.format(value);
  const ms = Number(value) * 1000;
  const isDate = ms < 8.64e15;
  return isDate ? new Date(ms).toISOString().replace("T", " ").replace(".000Z", " UTC") : text;
}

/** A whole number with its last digits behind the point. */
function decimal(value: bigint, places: number): string {
  const unit = 10n ** BigInt(places);
  const rest = (value % unit).toString().padStart(places, "0").replace(/0+$/, "");
  return `${whole.format(value / unit)}${rest === "" ? "" : `.${rest}`}`;
}

function partsOf(value: object, depth: number): readonly DecodedPart[] {
  const entries = Array.isArray(value)
    ? value.map((item, at) => [`${at + 1}`, item] as const)
    : Object.entries(value);
  const event = eventParts(value);
  const shown = entries
    .slice(0, MAX_ITEMS * 2)
    .slice(0, Array.isArray(value) ? MAX_ITEMS : undefined);
  const parts = shown.map(([name, item]): DecodedPart => [name, fieldOf(name, item, depth)]);
  const left = entries.length - shown.length;
  const more: readonly DecodedPart[] = left === 0 ? [] : [["…", `${whole.format(left)} more`]];
  return [...event, ...parts, ...more];
}

function fieldOf(name: string, value: unknown, depth: number): Decoded {
  if (typeof value === "string") return textField(name, value);
  if (typeof value !== "object" || value === null) return String(value ?? "none");
  const size = Object.keys(value).length;
  if (size === 0) return "none";
  return depth < MAX_DEPTH ? partsOf(value, depth + 1) : `${whole.format(size)} parts`;
}

function textField(name: string, text: string): string {
  if (name === "status" && QUANTITY.test(text)) return text === "0x1" ? "Success" : "Failed";
  if (name === "type" && text in TYPES) return `${TYPES[text]} (${text})`;
  if (text === "0x") return "empty";
  if (QUANTITY.test(text) && (text.length < ADDRESS_CHARS || !OPAQUE.test(name)))
    return OPAQUE.test(name) && name !== "nonce"
      ? text
      : quantity(FIELD_KINDS[name] ?? "count", text);
  return text.length > 2 * WORD_CHARS + 2
    ? `${text.slice(0, WORD_CHARS + 2)}… ${byteCount(text)}`
    : text;
}

function byteCount(text: string): string {
  return text.startsWith("0x")
    ? `(${whole.format((text.length - 2) / 2)} bytes)`
    : `(${whole.format(text.length)} characters)`;
}

const TYPES: Readonly<Record<string, string>> = {
  "0x0": "Legacy",
  "0x1": "With access list",
  "0x2": "With base fee",
  "0x3": "With blobs",
  "0x4": "Sets code",
};

/** Events of tokens, by the hash of their signature: name, and parts in the order of topics. */
const EVENTS: Readonly<Record<string, readonly [string, ...string[]]>> = {
  "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef": [
    "Transfer",
    ...["from", "to", "amount or id"],
  ],
  "0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925": [
    "Approval",
    ...["owner", "spender", "amount or id"],
  ],
};

function eventParts(log: object): readonly DecodedPart[] {
  const topics = listIn(memberOf(log, "topics")).map(String);
  const [name, ...fields] = EVENTS[topics[0] ?? ""] ?? [];
  if (name === undefined) return [];
  const data = String(memberOf(log, "data") ?? "").slice(2);
  const values = [
    ...topics.slice(1).map((topic) => topic.slice(2)),
    ...(data === "" ? [] : [data]),
  ];
  const parts = fields.map((field, at): DecodedPart => {
    const word = (values[at] ?? "").slice(0, WORD_CHARS);
    return [field, at < 2 ? addressOf(word) : numberOf(word)];
  });
  return [["event", [["name", name], ...parts]]];
}

/** The words of an ABI-encoded result: each as a number, and as what else it may be. */
function words(text: string): Decoded | null {
  if (text === "0x") return "Empty: no contract there, or a function without a result";
  const data = text.slice(2);
  if (!text.startsWith("0x") || data.length % WORD_CHARS !== 0 || /[^0-9a-f]/i.test(data))
    return null;
  const asText = stringAt(data, 0);
  if (asText !== null) return [["As text", asText]];
  const count = data.length / WORD_CHARS;
  const parts = Array.from({ length: Math.min(count, MAX_ITEMS) }, (_, at): DecodedPart => {
    const word = data.slice(at * WORD_CHARS, (at + 1) * WORD_CHARS);
    const mayBeAddress = /^0{24}(?!0{8})/.test(word);
    return [
      count === 1 ? "As a number" : `Word ${at + 1}`,
      `${numberOf(word)}${mayBeAddress ? `, or the address ${addressOf(word)}` : ""}`,
    ];
  });
  return count > MAX_ITEMS ? [...parts, ["…", `${whole.format(count - MAX_ITEMS)} more`]] : parts;
}

function addressOf(word: string): string {
  return `0x${word.slice(-ADDRESS_CHARS)}`;
}

function numberOf(word: string): string {
  return /^[0-9a-f]+$/i.test(word) ? whole.format(BigInt(`0x${word}`)) : "none";
}

/** A dynamic string whose offset stands at a place, counted in characters; null = it is none. */
function stringAt(data: string, at: number): string | null {
  const numberAt = (place: number): number =>
    Number(BigInt(`0x${data.slice(place, place + WORD_CHARS) || "0"}`));
  if (numberAt(at) !== WORD_CHARS / 2 || data.length < at + 2 * WORD_CHARS) return null;
  const length = numberAt(at + WORD_CHARS) * 2;
  const start = at + 2 * WORD_CHARS;
  if (length > data.length - start || data.length - start - length >= WORD_CHARS) return null;
  const hex = data.slice(start, start + length).match(/../g) ?? [];
  const bytes = Uint8Array.from(hex, (byte) => Number.parseInt(byte, 16));
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

const ERROR = "0x08c379a0";
const PANIC = "0x4e487b71";
const SELECTOR_CHARS = 10;

/** What the compiler panics for. */
const PANICS: Readonly<Record<number, string>> = {
  0: "generic",
  1: "an assertion failed",
  17: "an overflow or underflow",
  18: "a division by zero",
  33: "a value that is not of its enum",
  34: "a storage array that is encoded wrongly",
  49: "a pop of an empty array",
  50: "an index out of bounds",
  65: "too much memory",
  81: "a call of a function that is not set",
};

/** Why a contract reverted, from its data; null = it says neither `Error` nor `Panic`. */
export function revertReason(text: string): string | null {
  const data = text.slice(SELECTOR_CHARS);
  if (/[^0-9a-f]/i.test(data) || data.length < WORD_CHARS) return null;
  const selector = text.slice(0, SELECTOR_CHARS).toLowerCase();
  if (selector === ERROR) {
    const reason = stringAt(data, 0);
    return reason === null ? null : `Reverted: ${reason}`;
  }
  if (selector !== PANIC) return null;
  const code = BigInt(`0x${data.slice(0, WORD_CHARS)}`);
  return `Panicked: ${PANICS[Number(code)] ?? "unknown"} (0x${code.toString(16).padStart(2, "0")})`;
}

/** The error of an answer: its message, and the reason of a revert from wherever its data is. */
export function decodeError(error: unknown): Decoded {
  const found = [memberOf(error, "data"), memberOf(memberOf(error, "data"), "data")];
  const hex = found.find((data) => typeof data === "string" && data.startsWith("0x"));
  const reason = typeof hex === "string" ? revertReason(hex) : null;
  const parts: readonly DecodedPart[] = [
    ["Code", String(memberOf(error, "code") ?? "none")],
    ["Message", String(memberOf(error, "message") ?? "none")],
  ];
  return reason === null ? parts : [["Reason", reason], ...parts];
}
