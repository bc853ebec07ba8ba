// Calls over ranges as bytes: which can be asked for in parts, what a part asks, and where the
// elements of its result lie. Joined parts are the list, byte for byte.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type Call, readBlockRef } from "../../../src/core/rpc/call.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import {
  blocksNamed,
  elementsSpan,
  isRange,
  partCall,
  readRangeCall,
} from "../../../src/core/rpc/range-call.ts";
import { writeRequest } from "../../../src/core/rpc/wire-request.ts";

function callOf(params: string, name = "eth_getLogs"): Call {
  const bytes = Buffer.from(params);
  const method = methodOf(name);
  const block = readBlockRef(bytes, { start: 0, end: bytes.length }, method);
  return { methodName: name, method, block, ...writeRequest(name, bytes) };
}

test("a range from a number to a number or a tag is read; anything else is left whole", () => {
  const read = (params: string, name?: string) => readRangeCall(callOf(params, name));
  const filter = '{"fromBlock":"0x10","toBlock":"0x20","topics":[null,["0xab"]]}';
  assert.deepEqual(read(`[${filter}]`), { filter: JSON.parse(filter), from: 16, to: 32 });
  assert.equal(read('[{"fromBlock":"earliest","toBlock":"finalized"}]')?.to, "finalized");
  assert.equal(read('[{"fromBlock":"0x1"}]')?.to, "latest");
  assert.equal(read('[{"fromBlock":"0x1","toBlock":"\\u0070ending"}]'), null);
  assert.equal(read('[{"fromBlock":"0x1","toBlock":"pending"}]'), null);
  assert.equal(read('[{"fromBlock":"0x1","toBlock":7}]'), null);
  assert.equal(read('[{"fromBlock":"latest"}]'), null);
  assert.equal(read('[{"blockHash":"0xab"}]'), null);
  assert.equal(read('[{"fromBlock":"0x1"},{}]'), null);
  assert.equal(read("[]"), null);
  const pages = '[{"fromBlock":"0x1","toBlock":"0x9","after":5,"count":5}]';
  assert.equal(read(pages, "trace_filter"), null, "a page of the whole range");
});

test("only reads over a range that begins at a number are ranges", () => {
  const range = '[{"fromBlock":"0x1","toBlock":"0x9"}]';
  assert.ok(isRange(callOf(range)) && isRange(callOf(range, "trace_filter")));
  assert.equal(isRange(callOf(range, "eth_newFilter")), false);
  assert.equal(isRange(callOf("[{}]")), false);
  assert.equal(isRange(callOf('["0x1",false]', "eth_getBlockByNumber")), false);
});

test("a part asks the same of other blocks", () => {
  const whole = callOf('[{"topics":[],"toBlock":"latest","fromBlock":"0x1","address":"0xaa"}]');
  const range = readRangeCall(whole);
  assert.ok(range !== null);
  const { body, block } = partCall(whole, range, { from: 17, to: 255 });
  assert.deepEqual(block, { kind: "range", from: 17, to: 255 });
  assert.deepEqual(JSON.parse(body.toString()).params, [
    { topics: [], toBlock: "0xff", fromBlock: "0x11", address: "0xaa" },
  ]);
});

const space = fc.stringMatching(/^[ \n\t]{0,3}$/);

test("the elements of parts, joined by commas, are the elements of the whole list", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.jsonValue(), { maxLength: 3 })), space, (lists, blank) => {
      const parts = lists.map((list) => {
        const json = `[${blank}${list.map((value) => JSON.stringify(value)).join(",")}${blank}]`;
        const bytes = Buffer.from(`{"result":${json}}`);
        const span = elementsSpan(bytes, { start: 10, end: bytes.length - 1 });
        return span === null ? assert.fail() : bytes.toString("utf8", span.start, span.end);
      });
      const joined = `[${parts.filter((part) => part.length > 0).join(",")}]`;
      assert.deepEqual(JSON.parse(joined), JSON.parse(JSON.stringify(lists.flat())));
    }),
  );
  for (const text of ["null", "{}", '"["', "[", "1"]) {
    const bytes = Buffer.from(text);
    assert.equal(elementsSpan(bytes, { start: 0, end: bytes.length }), null, text);
  }
});

test("each block that elements name is told once; a list that disagrees with itself is none", () => {
  const named = (list: readonly unknown[]) => {
    const bytes = Buffer.from(JSON.stringify(list));
    return blocksNamed(bytes, { start: 0, end: bytes.length });
  };
  const [one, two] = [
    { blockNumber: "0x1", blockHash: "0xAB" },
    { blockNumber: 2, blockHash: "0xcd" },
  ];
  assert.deepEqual(named([one, two, { ...one, blockHash: "0xab" }]), [
    { number: 1, hash: "0xab" },
    { number: 2, hash: "0xcd" },
  ]);
  assert.deepEqual(named([]), []);
  assert.equal(named([one, { ...one, blockHash: "0xef" }]), null);
  assert.equal(named([{ blockNumber: null, blockHash: null }]), null);
  assert.equal(named([1]), null);
});
