// A payment channel as a value: what its payer has put in, has promised and has used, and what of
// that can be taken out on the chain. All amounts are base units of its token. Pure: knows no
// store, no chain and no signature.

/** A promise of the payer's: `units` in all, since the channel was opened. */
export interface Voucher {
  readonly units: bigint;
  /** 0x…; secret: with it a call can be paid. */
  readonly signature: string;
}

/**
 * How far a channel has come. `opening`: its transaction is written and perhaps sent. `closing`:
 * what is taken out at the end is fixed, and nothing more is charged. `failed`: it never came to
 * be.
 */
export type ChannelState = "opening" | "open" | "closing" | "closed" | "failed";

/**
 * The money of a channel. settled ≤ spent ≤ the highest voucher ≤ deposit, but for deposits that
 * the chain has given back.
 */
export interface ChannelMoney {
  readonly deposit: bigint;
  /** Charged for calls that were delivered. */
  readonly spent: bigint;
  /** Received on the chain. */
  readonly settled: bigint;
  /**
   * Vouchers that are still of use, the lowest first: at most one that promises no more than was
   * spent, and the highest of all.
   */
  readonly vouchers: readonly Voucher[];
}

/**
 * Vouchers kept of one channel: enough to take out nearly all that was spent, however far ahead a
 * payer promises.
 */
export const MAX_VOUCHERS = 16;

/** The highest promise; null = there is none. */
export function highestOf({ vouchers }: Pick<ChannelMoney, "vouchers">): Voucher | null {
  return vouchers.at(-1) ?? null;
}

/** What was promised in all. */
export function acceptedOf(money: Pick<ChannelMoney, "vouchers">): bigint {
  return highestOf(money)?.units ?? 0n;
}

/**
 * The voucher that takes out most without taking more than was spent; null = none does better than
 * what was taken out before.
 */
export function collectable({ vouchers, spent, settled }: ChannelMoney): Voucher | null {
  return vouchers.findLast((voucher) => voucher.units <= spent && voucher.units > settled) ?? null;
}

/** Keeps a voucher, whose signature was found to be right. */
export function withVoucher(money: ChannelMoney, voucher: Voucher): ChannelMoney {
  if (money.vouchers.some((kept) => kept.units === voucher.units)) return money;
  const vouchers = [...money.vouchers, voucher].sort((a, b) => (a.units < b.units ? -1 : 1));
  return { ...money, vouchers: useful(vouchers, money.spent) };
}

/**
 * Charges a call, where all that was promised by now pays for it; null = it does not. Calls end in
 * another order than they began: one that began with a lower voucher is paid for by the higher one
 * of another, as long as that one's own price was held beside it.
 */
export function withCharge(
  money: ChannelMoney,
  units: bigint,
  vouchers: readonly Voucher[],
): ChannelMoney | null {
  const spent = money.spent + units;
  const promised = vouchers.reduce(withVoucher, money);
  const accepted = acceptedOf(promised);
  return spent > accepted || accepted > money.deposit
    ? null
    : { ...promised, spent, vouchers: useful(promised.vouchers, spent) };
}

/**
 * What a voucher has to promise at least for a call of `units`, while others are under way that
 * hold `held`.
 */
export function requiredFor(
  { spent }: Pick<ChannelMoney, "spent">,
  held: bigint,
  units: bigint,
): bigint {
  return spent + held + units;
}

/** The greater one of two amounts. */
export function greaterOf(a: bigint, b: bigint): bigint {
  if (a > b) return a;
  return b;
}

/** The lesser one of two amounts. */
export function lesserOf(a: bigint, b: bigint): bigint {
  if (a < b) return a;
  return b;
}

/**
 * Leaves out what a higher voucher does as well, and, where there are too many, the ones that lie
 * closest together.
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
