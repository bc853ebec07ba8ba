// Headers below a pinned block: only those that are linked by their parent hashes count, whatever
// comes and in whatever order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HeaderChain, MAX_LINKED_HEADERS } from "../../../src/core/routing/range-parts.ts";
import type { Block } from "../../../src/core/stream/chain-event.ts";

const block = (number: number, fork = ""): Block => ({
  number,
  hash: `${number}${fork}`,
  parentHash: `${number - 1}${fork}`,
});

test("headers are linked downwards from the end; those of another fork are not", () => {
  const chain = new HeaderChain(block(1_000));
  assert.deepEqual([chain.lowest, chain.hashAt(1_000), chain.hashAt(999)], [1_000, "1000", null]);
  assert.equal(chain.add(block(998)), false, "one between is missing");
  assert.equal(chain.add(block(999, "b")), false);
  assert.equal(chain.add(block(999)), true);
  assert.equal(chain.add(block(999)), false);
  assert.equal(chain.add(block(999, "b")), false);
  assert.equal(chain.add({ ...block(998), parentHash: "997b" }), true);
  assert.deepEqual(chain.next, { number: 997, hash: "997b" });
  assert.equal(chain.add(block(997)), false, "its child names another one");
  assert.equal(chain.add(block(997, "b")), true);
  assert.equal(chain.lowest, 997);
  assert.equal(chain.hashAt(1_001), null);
});

test("so many blocks below the end have to be linked", () => {
  const chain = new HeaderChain(block(1_000));
  assert.equal(chain.mustLink(1_000 - MAX_LINKED_HEADERS + 1), true);
  assert.equal(chain.mustLink(1_000 - MAX_LINKED_HEADERS), false);
});
