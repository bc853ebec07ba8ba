// Kinds of settings that several tables share.
import { z } from "zod";

const DAY_MS = 86_400_000;

/** A whole number within bounds. */
export const count = (min: number, max: number, fallback: number) =>
  z.int().min(min).max(max).default(fallback);

/** A time in milliseconds, at most a day unless `max` says otherwise. */
export const intervalMs = (fallback: number, max = DAY_MS) => count(1, max, fallback);

/** The operator's secret; absent = nobody is the operator. */
export const operatorToken = z
  .string()
  .min(24)
  .max(200)
  .optional()
  .meta({ title: "text of 24 to 200 characters" });
