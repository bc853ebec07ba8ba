// Methods of filters for tests that use none: every call is a mistake of the test.
import assert from "node:assert/strict";
import type { FilterMethods } from "../../src/web/rpc/filter-methods.ts";

/** Serves no filters. */
export const NO_FILTERS: Pick<FilterMethods, "serve" | "logs"> = {
  serve: ({ methodName }) => assert.fail(`nobody asks ${methodName} here`),
  logs: ({ methodName }) => assert.fail(`nobody asks ${methodName} here`),
};
