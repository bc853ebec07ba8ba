// `svc providers check`: a vendor that closes is named in time, a row that is old as well, and the
// exit code says whether a pipeline should stop.
import assert from "node:assert/strict";
import { test } from "node:test";
import { vendorFindings } from "../../src/cli/providers-check.ts";
import { VENDORS } from "../../src/presets/vendors.ts";

const PLACE = { line: 4, column: 7, isNarrow: false };
const use = (vendor: string, lacks: readonly string[] = []) => ({
  ...PLACE,
  path: ["profiles", "public", "providers", 0],
  vendor,
  lacks,
});
const at = (day: string): number => Date.parse(day);

function planted(sunset: string) {
  const alchemy = VENDORS.get("alchemy") ?? assert.fail();
  return new Map([...VENDORS, ["alchemy", { ...alchemy, sunset }]]);
}

test("a planted sunset is named from 90 days before it, and counts", () => {
  const vendors = planted("2027-03-01");
  const on = (day: string) => vendorFindings([use("alchemy"), use("infura")], at(day), vendors);
  assert.deepEqual(on("2026-11-30"), { lines: [], closing: 0 });
  const near = on("2026-12-01");
  assert.equal(near.closing, 1);
  assert.equal(near.lines[0]?.message, "Alchemy closes on 2027-03-01, in 90 days");
  const past = on("2027-03-02");
  assert.deepEqual([past.closing, past.lines[0]?.message], [1, "Alchemy closed on 2027-03-01"]);
});

test("a row that was looked at more than a year ago is named, and stops nothing", () => {
  const { lines, closing } = vendorFindings([use("infura")], at("2027-12-01"));
  assert.equal(closing, 0);
  assert.match(
    lines[0]?.message ?? "",
    /^what is known of Infura was looked at on 2026-11-29, 367/,
  );
});

test("addresses that are not known are named", () => {
  const uses = [use("quicknode", ["base", "odd"]), use("thirdweb")];
  const messages = vendorFindings(uses, at("2026-12-01")).lines.map(({ message }) => message);
  assert.deepEqual(messages, [
    "has no address at Quicknode for base, odd",
    "which chains thirdweb serves is not known",
  ]);
});
