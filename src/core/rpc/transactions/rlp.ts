// RLP, the encoding of transactions: reads items where they lie, without copying them, one level
// at a time. Knows no transaction.

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
  if (prefix < 0x80) {
    const whole = bytes.subarray(at, at + 1);
    return { isList: false, whole, content: whole };
  }
  const isList = prefix >= 0xc0;
  const short = prefix - (isList ? 0xc0 : 0x80);
  if (short <= 55) return itemOf(bytes, at, { isList, header: 1, length: short });
  const width = short - 55;
  if (width > MAX_WIDTH || at + 1 + width > bytes.length) return null;
  const length = bytes.readUIntBE(at + 1, width);
  return itemOf(bytes, at, { isList, header: 1 + width, length });
}

function itemOf(
  bytes: Buffer,
  at: number,
  {
    isList,
    header,
    length,
  }: { readonly isList: boolean; readonly header: number; readonly length: number },
): RlpItem | null {
  const start = at + header;
  const end = start + length;
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
  if (length <= 55) return Buffer.concat([Buffer.of(0xc0 + length), ...items]);
  const hex = length.toString(16);
  const digits = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  return Buffer.concat([Buffer.of(0xf7 + digits.length), digits, ...items]);
}
