// A payment channel as a value: its deposit, the payer's vouchers, what was spent, and how much of
// that the chain pays out. All amounts are base units of its token. Pure: knows no store, no chain
// and no signature.

/** A payer's signed promise of `units` in total since the channel was opened. */
export interface Voucher {
  readonly units: bigint;
  /** 0x…; secret: anybody who has it can pay for a call. */
  readonly signature: string;
}

/**
 * The money of a channel, by the columns of its row. settled ≤ spent ≤ the highest voucher ≤
 * deposit, but for deposits that the chain has given back.
 */
export interface ChannelMoney {
  readonly deposit_units: bigint;
  /** Charged for calls that were delivered. */
  readonly spent_units: bigint;
  /** Received on the chain. */
  readonly settled_units: bigint;
  /**
   * Vouchers that are still useful, the lowest first: at most one that promises no more than was
   * spent, and the highest of all.
   */
  readonly vouchers: readonly Voucher[];
}

/**
 * Vouchers kept of one channel: enough to settle nearly all that was spent, however far ahead a
 * payer promises.
 */
export const MAX_VOUCHERS = 16;

/** The highest voucher; null = there is none. */
export function highestOf({ vouchers }: Pick<ChannelMoney, "vouchers">): Voucher | null {
  return vouchers.at(-1) ?? null;
}

/** The amount promised in total. */
export function acceptedOf(money: Pick<ChannelMoney, "vouchers">): bigint {
  return highestOf(money)?.units ?? 0n;
}

/**
 * The highest voucher that promises no more than was spent; null = none exceeds what was settled
 * before.
 */
export function collectable(money: ChannelMoney): Voucher | null {
  const { vouchers, spent_units: spent, settled_units: settled } = money;
  return vouchers.findLast(({ units }) => units <= spent && units > settled) ?? null;
}

/** Adds a voucher whose signature was verified. */
export function withVoucher(money: ChannelMoney, voucher: Voucher): ChannelMoney {
  if (money.vouchers.some((kept) => kept.units === voucher.units)) return money;
  const vouchers = [...money.vouchers, voucher].sort((a, b) => (a.units < b.units ? -1 : 1));
  return { ...money, vouchers: useful(vouchers, money.spent_units) };
}

/**
 * Charges a call if the highest voucher covers it; null = it does not. Calls do not end in the
 * order they began: a call with a lower voucher is covered by the higher voucher of another call,
 * as long as the price of each was held.
 */
export function withCharge(
  money: ChannelMoney,
  units: bigint,
  voucher: Voucher,
): ChannelMoney | null {
  const spent = money.spent_units + units;
  const promised = withVoucher(money, voucher);
  const accepted = acceptedOf(promised);
  return spent > accepted || accepted > money.deposit_units
    ? null
    : { ...promised, spent_units: spent, vouchers: useful(promised.vouchers, spent) };
}

/** The least that a voucher has to promise for a call of `units`, while other calls hold `held`. */
export function requiredFor(
  money: Pick<ChannelMoney, "spent_units">,
  held: bigint,
  units: bigint,
): bigint {
  return money.spent_units + held + units;
}

/** A time as the store keeps it. */
export function wholeMs(ms: number): bigint {
  return BigInt(Math.floor(ms));
}

/**
 * Drops vouchers that a higher one makes useless and, if there are too many, the ones closest to
 * each other.
 */
function useful(vouchers: readonly Voucher[], spent: bigint): readonly Voucher[] {
  const payable = vouchers.findLastIndex((voucher) => voucher.units <= spent);
  const kept = vouchers.slice(Math.max(0, payable));
  while (kept.length > MAX_VOUCHERS) kept.splice(mostCrowded(kept), 1);
  return kept;
}

/**
 * The voucher between two others that are closest to each other; neither the first nor the last.
 */
function mostCrowded(vouchers: readonly Voucher[]): number {
  let found = 1;
  let least: bigint | null = null;
  for (let at = 1; at < vouchers.length - 1; at++) {
    const gap = (vouchers[at + 1]?.units ?? 0n) - (vouchers[at - 1]?.units ?? 0n);
    if (least !== null && gap >= least) continue;
    least = gap;
    found = at;
  }
  return found;
}
