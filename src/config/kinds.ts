// Kinds of settings that several tables share.
import { z } from "zod";

const DAY_MS = 86_400_000;

/** A whole number within bounds. */
export const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);

/** A time in milliseconds, at most a day unless `max` says otherwise. */
export const intervalMs = (fallback: number, max = DAY_MS) => count(1, max, fallback);

const UNITS: Readonly<Record<string, number>> = { KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };
const SIZE = /^(\d{1,6})(KiB|MiB|GiB)$/;

/** A number of bytes, also written as `128MiB`. */
export const byteSize = (min: number, max: number, fallback: number) =>
  z
    .union([z.int().min(min).max(max), z.string().regex(SIZE)])
    .refine((value) => bytesOf(value) >= min && bytesOf(value) <= max)
    .meta({ title: `bytes, such as \`128MiB\`, from ${min} to ${max}` })
    .default(fallback);

/** The bytes of a valid size. */
export function bytesOf(size: number | string): number {
  if (typeof size === "number") return size;
  const [, count = "0", unit = ""] = SIZE.exec(size) ?? [];
  return Number(count) * (UNITS[unit] ?? 0);
}

/** The operator's secret; absent = nobody is the operator. */
export const operatorToken = z
  .string()
  .min(24)
  .max(200)
  .optional()
  .meta({ title: "text of 24 to 200 characters" });
