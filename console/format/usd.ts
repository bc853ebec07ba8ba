// US dollars as text: a balance in cents, small prices with as many places as they need.
import { DASH } from "./numbers.ts";

const MAX_PLACES = 6;
const SMALL = 0.01;

const cents = new Intl.NumberFormat("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const exact = new Intl.NumberFormat("en", { maximumFractionDigits: MAX_PLACES });

/** An amount; what is not known is a dash, and something is never 0. */
export function usd(amount: string | number | null | undefined): string {
  const value = Number(amount ?? Number.NaN);
  if (!Number.isFinite(value)) return DASH;
  const size = Math.abs(value);
  if (size > 0 && size < 10 ** -MAX_PLACES) return "<$0.000001";
  const text = size === 0 || size >= SMALL ? cents.format(size) : exact.format(size);
  return `${value < 0 ? "−" : ""}$${text}`;
}
