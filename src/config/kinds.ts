// Kinds of settings that several tables use.
import { z } from "zod";

const DAY_MS = 86_400_000;

/** A whole number within bounds. */
export const count = (min: number, max: number, fallback: number) => z.int().min(min).max(max).default(fallback);

/** A time in milliseconds, a day at most unless said otherwise. */
export const intervalMs = (fallback: number, max = DAY_MS) => count(1, max, fallback);
