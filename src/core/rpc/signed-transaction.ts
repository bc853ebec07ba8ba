// A raw signed transaction, read: its nonce, what was signed, and how a node tells of it while it
// is pending. One table says which fields each type has. Knows no hashes and no curves.

/** A signed transaction of a known type. */
export interface SignedTransaction {
  readonly type: number;
  readonly nonce: number;
  /** The bytes whose hash is that of the transaction. */
  readonly canonical: Buffer;
  /** The bytes whose hash was signed. */
  readonly signedBytes: Buffer;
  readonly signature: Signature;
  /** The values of its fields as JSON, by their names in JSON-RPC. */
  readonly fields: ReadonlyMap<string, string>;
}

/** How the value of a field is written. */
type Form = (item: RlpItem) => string | null;

/** Longest string of bytes that is a number. */
const MAX_QUANTITY_BYTES = 32;
const BLOB_TYPE = 3;
const LEGACY_TYPE = 0;
/** First bytes below this are a type (EIP-2718); a legacy transaction begins with a list. */
const FIRST_LIST_BYTE = 0xc0;

/** Members of a pending transaction, in the order of go-ethereum. */
const ORDER = `gas gasPrice maxFeePerGas maxPriorityFeePerGas maxFeePerBlobGas hash input nonce to
  transactionIndex value type accessList chainId blobVersionedHashes authorizationList
  v r s yParity`.split(/\s+/);

interface Field {
  readonly name: string;
  readonly form: Form;
}

function fieldsOf(names: string): readonly Field[] {
  return names.split(" ").map((name) => ({ name, form: formOf(name) }));
}

function formOf(name: string): Form {
  switch (name) {
    case "to":
      return ({ content, ...item }) =>
        content.length === 0 && !item.isList ? "null" : hexOfLength(20)({ ...item, content });
    case "input":
      return ({ isList, content }) => (isList ? null : `"0x${content.toString("hex")}"`);
    case "accessList":
      return listOf(objectOf(fieldsOf("address storageKeys")));
    case "address":
      return hexOfLength(20);
    case "blobVersionedHashes":
    case "storageKeys":
      return listOf(hexOfLength(32));
    case "authorizationList":
      return listOf(objectOf(fieldsOf("chainId address nonce yParity r s")));
    default:
      return quantity;
  }
}

function quantity({ isList, content }: RlpItem): string | null {
  if (isList || content.length > MAX_QUANTITY_BYTES || content[0] === 0) return null;
  return content.length === 0 ? '"0x0"' : `"0x${content.toString("hex").replace(/^0/, "")}"`;
}

function hexOfLength(length: number): Form {
  return ({ isList, content }) =>
    isList || content.length !== length ? null : `"0x${content.toString("hex")}"`;
}

function listOf(form: Form): Form {
  return (item) => {
    const texts = rlpItems(item)?.map(form);
    return texts === undefined || texts.includes(null) ? null : `[${texts.join(",")}]`;
  };
}

function objectOf(fields: readonly Field[]): Form {
  return (item) => {
    const values = valuesOf(rlpItems(item), fields);
    if (values === null) return null;
    return `{${[...values].map(([name, text]) => `"${name}":${text}`).join(",")}}`;
  };
}

function valuesOf(
  items: readonly RlpItem[] | null,
  fields: readonly Field[],
): ReadonlyMap<string, string> | null {
  if (items === null || items.length !== fields.length) return null;
  const values = new Map<string, string>();
  for (const [at, { name, form }] of fields.entries()) {
    const item = items[at];
    const text = item === undefined ? null : form(item);
    if (text === null) return null;
    values.set(name, text);
  }
  return values;
}

const LEGACY = fieldsOf("nonce gasPrice gas to value input v r s");
const UNTIL_FEES = "chainId nonce maxPriorityFeePerGas maxFeePerGas gas to value input accessList";
const TYPES: ReadonlyMap<number, readonly Field[]> = new Map([
  [1, fieldsOf("chainId nonce gasPrice gas to value input accessList yParity r s")],
  [2, fieldsOf(`${UNTIL_FEES} yParity r s`)],
  [BLOB_TYPE, fieldsOf(`${UNTIL_FEES} maxFeePerBlobGas blobVersionedHashes yParity r s`)],
  [4, fieldsOf(`${UNTIL_FEES} authorizationList yParity r s`)],
]);

/**
 * The bytes whose hash is that of the transaction: blob transactions (EIP-4844) travel with their
 * blobs, which the hash leaves out.
 */
export function canonicalBytes(raw: Buffer): Buffer {
  if (raw[0] !== BLOB_TYPE) return raw;
  const wrapper = rlpItemAt(raw, 1);
  // Not the items behind the first: those are the blobs.
  const inner = wrapper?.isList === true ? rlpItemAt(wrapper.content, 0) : null;
  return inner?.isList === true ? Buffer.concat([raw.subarray(0, 1), inner.whole]) : raw;
}

/** Reads a raw transaction; null = it is of no known type, or malformed. */
export function readTransaction(raw: Buffer): SignedTransaction | null {
  const canonical = canonicalBytes(raw);
  const [first = 0] = canonical;
  const isLegacy = first >= FIRST_LIST_BYTE;
  const fields = isLegacy ? LEGACY : TYPES.get(first);
  const list = fields === undefined ? null : rlpItemAt(canonical, isLegacy ? 0 : 1);
  if (fields === undefined || list === null) return null;
  if (list.whole.length !== canonical.length - (isLegacy ? 0 : 1)) return null;
  const items = rlpItems(list);
  const values = valuesOf(items, fields);
  if (items === null || values === null) return null;
  const type = isLegacy ? LEGACY_TYPE : first;
  const nonce = Number(numberIn(values, "nonce"));
  const signature = signatureIn(values);
  if (!Number.isSafeInteger(nonce) || signature === null) return null;
  const { chainId } = signature;
  const signedBytes = signedBytesOf(items, isLegacy ? { chainId } : { type });
  const known =
    chainId === null ? values : new Map([...values, ["chainId", hex(chainId)] as const]);
  return { type, nonce, canonical, signedBytes, signature, fields: known };
}

function numberIn(values: ReadonlyMap<string, string>, name: string): bigint {
  return BigInt(JSON.parse(values.get(name) ?? '"0x0"'));
}

function hex(value: bigint): string {
  return `"0x${value.toString(16)}"`;
}

interface Signature {
  readonly r: bigint;
  readonly s: bigint;
  readonly yParity: number;
  /** Of a legacy transaction: the chain that its signature names (EIP-155); null = none. */
  readonly chainId: bigint | null;
}

function signatureIn(values: ReadonlyMap<string, string>): Signature | null {
  const [r, s] = [numberIn(values, "r"), numberIn(values, "s")];
  const signed = (parity: bigint, chainId: bigint | null): Signature | null =>
    parity === 0n || parity === 1n ? { r, s, yParity: Number(parity), chainId } : null;
  if (!values.has("v")) return signed(numberIn(values, "yParity"), null);
  const v = numberIn(values, "v");
  if (v < 35n) return signed(v - 27n, null);
  return signed((v - 35n) % 2n, (v - 35n) / 2n);
}

/** What was signed: the fields before the signature, and of a legacy one its chain (EIP-155). */
function signedBytesOf(
  items: readonly RlpItem[],
  { type, chainId = null }: { readonly type?: number; readonly chainId?: bigint | null },
): Buffer {
  const unsigned = items.slice(0, -3).map(({ whole }) => whole);
  if (type !== undefined) return Buffer.concat([Buffer.of(type), rlpListOf(unsigned)]);
  if (chainId === null) return rlpListOf(unsigned);
  return rlpListOf([...unsigned, rlpNumber(chainId), Buffer.of(0x80), Buffer.of(0x80)]);
}

function rlpNumber(value: bigint): Buffer {
  const bytes = bytesOf(value);
  if (bytes.length === 1 && value < 0x80n) return bytes;
  return Buffer.concat([rlpHeader(0x80, bytes.length), bytes]);
}

/** Big-endian, without leading zeros. */
function bytesOf(value: bigint): Buffer {
  const digits = value === 0n ? "" : value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, "hex");
}

function rlpHeader(base: number, length: number): Buffer {
  if (length <= 55) return Buffer.of(base + length);
  const digits = bytesOf(BigInt(length));
  return Buffer.concat([Buffer.of(base + 55 + digits.length), digits]);
}

/** The transaction as a node tells it while it is pending. Hash and sender in lower case. */
export function pendingTransaction(
  { type, fields }: SignedTransaction,
  { hash, sender }: { readonly hash: string; readonly sender: string },
): string {
  // While a transaction is pending, the price that it pays at most stands for the price it pays.
  const gasPrice = fields.get("gasPrice") ?? fields.get("maxFeePerGas");
  const members = new Map<string, string | undefined>([
    ...fields,
    ["gasPrice", gasPrice],
    ["hash", `"${hash}"`],
    ["transactionIndex", "null"],
    ["type", `"0x${type.toString(16)}"`],
    ["v", fields.get("v") ?? fields.get("yParity")],
  ]);
  const texts = ORDER.flatMap((name) => {
    const text = members.get(name);
    return text === undefined ? [] : [`"${name}":${text}`];
  });
  return `{"blockHash":null,"blockNumber":null,"from":"${sender}",${texts.join(",")}}`;
}

/** One item: a string of bytes, or a list of items. */
export interface RlpItem {
  readonly isList: boolean;
  /** With its header. */
  readonly whole: Buffer;
  /** Without it. */
  readonly content: Buffer;
}

/** Items that one list may have. */
const MAX_ITEMS = 65_536;
/** A length has at most so many bytes here. */
const MAX_WIDTH = 4;

/** The item at an offset; null = there is none, or it is not complete. */
export function rlpItemAt(bytes: Buffer, at: number): RlpItem | null {
  const prefix = bytes[at];
  if (prefix === undefined) return null;
  const isList = prefix >= FIRST_LIST_BYTE;
  const isOwnContent = prefix < 0x80;
  const short = prefix - (isList ? FIRST_LIST_BYTE : 0x80);
  const width = Math.max(0, short - 55);
  if (width > MAX_WIDTH || at + 1 + width > bytes.length) return null;
  const start = isOwnContent ? at : at + 1 + width;
  const long = width === 0 ? short : bytes.readUIntBE(at + 1, width);
  const end = start + (isOwnContent ? 1 : long);
  if (end > bytes.length) return null;
  return { isList, whole: bytes.subarray(at, end), content: bytes.subarray(start, end) };
}

/** The items of a list; null = it is no list, or one that cannot be read. */
export function rlpItems({ isList, content }: RlpItem): readonly RlpItem[] | null {
  if (!isList) return null;
  const items: RlpItem[] = [];
  for (let at = 0; at < content.length; ) {
    const item = items.length < MAX_ITEMS ? rlpItemAt(content, at) : null;
    if (item === null) return null;
    items.push(item);
    at += item.whole.length;
  }
  return items;
}

/** A list of items that are encoded already. */
export function rlpListOf(items: readonly Buffer[]): Buffer {
  const length = items.reduce((sum, item) => sum + item.length, 0);
  return Buffer.concat([rlpHeader(FIRST_LIST_BYTE, length), ...items]);
}
