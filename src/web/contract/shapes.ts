// The words that schemas of the contract are written in. What a field means follows each word where
// it is used.
import { z } from "zod";

const text = z.string();
const int = z.int();
const count = int.min(0);
const number = z.number();
const amount = number.min(0);

/** Single values. */
export const is = {
  text,
  textOrNull: text.nullable(),
  flag: z.boolean(),
  int,
  intOrNull: int.nullable(),
  /** A whole number from 0. */
  count,
  countOrNull: count.nullable(),
  number,
  numberOrNull: number.nullable(),
  /** A number from 0. */
  amount,
  amountOrNull: amount.nullable(),
  /** A day in UTC. */
  day: z.iso.date(),
  anything: z.unknown(),
} as const;

/** A whole number of a query or body. */
export const whole = (least: number, most: number, fallback: number) =>
  int.min(least).max(most).default(fallback);

/** Text of this form. */
export const pattern = (form: RegExp) => text.regex(form);
/** An id that begins with this word. */
export const idOf = (kind: string) => pattern(new RegExp(`^${kind}_[0-9a-z]{20}$`));
/** Text of 1 to so many characters. */
export const short = (most: number) => text.min(1).max(most);

/** The query of a list that is read by pages. */
export const paged = <Id extends z.ZodType>(
  id: Id,
  most: number,
  fallback: number,
  of: string,
) => ({
  limit: whole(1, most, fallback).describe(`Most ${of} in one answer.`),
  after: id.optional().describe("`next` of the answer before."),
});
/** Where the next page of a list begins. */
export const next = <Id extends z.ZodType>(id: Id) =>
  id.nullable().describe("Pass it as `after` to read on; null = that was all.");

/** One of these words. */
export const oneOf = z.enum;
/** This value alone. */
export const exactly = z.literal;

/** An object of an answer. */
export const record = z.object;
/** An object that a request holds; unknown fields are refused. */
export const request = z.strictObject;
/** An object that may hold other fields, too. */
export const openRecord = z.looseObject;
/** An object with values of one kind under any names. */
export const map = <Value extends z.ZodType>(value: Value) => z.record(text, value);
export const list = z.array;
/** A list of objects. */
export const rows = <Fields extends z.core.$ZodLooseShape>(fields: Fields) =>
  z.array(z.object(fields));
export const recordOrNull = <Fields extends z.core.$ZodLooseShape>(fields: Fields) =>
  z.object(fields).nullable();
