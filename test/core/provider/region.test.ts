// Regions: where a provider stands for a node, by what both state.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  REGION_PREFERENCES,
  type RegionPreference,
  regionPlacement,
} from "../../../src/core/provider/region.ts";

type Row = readonly [
  preference: RegionPreference,
  own: string | null,
  region: string | null,
  rank: number,
  reason: string | null,
];

const ROWS: readonly Row[] = [
  ["prefer", "eu", "eu", 0, null],
  ["prefer", "eu", null, 1, null],
  ["prefer", "eu", "us", 2, null],
  ["prefer", "eu", "EU", 2, null],
  ["only", "eu", "eu", 0, null],
  ["only", "eu", null, 2, "other_region"],
  ["only", "eu", "us", 2, "other_region"],
  ["off", "eu", "us", 0, null],
  ["off", "eu", null, 0, null],
];

test("the own region is nearest, then no stated region, then others; `only` refuses these", () => {
  for (const [preference, own, region, regionRank, reason] of ROWS)
    assert.deepEqual(
      regionPlacement({ region }, preference, own),
      { regionRank, reason },
      `${preference} ${own} ${region}`,
    );
});

test("a node without a region treats all providers alike", () => {
  for (const preference of REGION_PREFERENCES)
    for (const region of ["eu", null])
      assert.deepEqual(regionPlacement({ region }, preference, null), {
        regionRank: 0,
        reason: null,
      });
});
