// Error shapes as families: what is judged under other numbers, names, punctuation, case, gateways
// and wrapping, and with the rules that know it off.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Verdict } from "../../../src/core/provider/attempt.ts";
import { DECISIONS } from "../../../src/core/provider-errors/category.ts";
import { classify } from "../../../src/core/provider-errors/classify.ts";
import { FAMILY_RULES, WEAK_FAMILY_RULES } from "../../../src/core/provider-errors/families.ts";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";
import { namedSeed } from "../../fakes/seed.ts";
import {
  CORPUS,
  decidingRule,
  failureOf,
  RECORDED,
  type Recorded,
  SHAPES,
  type Shape,
  scoreUnseen,
} from "../../generalisation/recorded.ts";
import { listsOf, splitsOf, vendorsOf } from "../../generalisation/splits.ts";

const SEED = namedSeed(20_261_122);

function judge(failure: Failure, methodName: string): Verdict {
  return classify(failure, methodOf(methodName), { methodName, rules: [], wallMs: 0 });
}

describe("error shapes of nodes and vendors", () => {
  it("are judged as recorded", () => {
    const wrong = SHAPES.filter(
      (shape) => judge(failureOf(shape), shape.method).category !== shape.category,
    );
    const told = wrong.map(
      (shape) =>
        `${shape.id} ${shape.message}: ${judge(failureOf(shape), shape.method).category}, not ` +
        `${shape.category}`,
    );
    assert.deepEqual(told, []);
  });

  it("are known although the rules written from nothing else are off", () => {
    const random = splitsOf(RECORDED, { count: 4, share: 0.2, seed: SEED });
    for (const [parts, least] of [
      [random, 0.93],
      [vendorsOf(RECORDED), 0.93],
      [listsOf(RECORDED), 0.93],
    ] as const) {
      const scores = parts.map((part) => scoreUnseen(part, "rule"));
      const judged = scores.reduce((total, score) => total + score.judged, 0);
      const right = scores.reduce((total, score) => total + score.right, 0);
      assert.ok(right / judged >= least, `${right} of ${judged}, seed ${SEED}`);
    }
  });
});

const NUMBER = /(?<![\w.^])\d[\d,]*(?![\w.]|,\d)/g;
/** Shapes whose numbers are the message. */
const FIXED = new Set([1094, 1998, 2307, 2508]);
/** Shapes that count as a whole message only. */
const WHOLE = new Set([1022, 1122, 1072, 1076, 1158, 1950]);
const PREFIXES = [
  "",
  '"',
  "rpc error: ",
  "Error: ",
  "upstream said: ",
  "rpc error: code = Unknown desc = ",
  '{"code":-32000,"message":"',
  "[eth] ",
  "err: ",
  "node-7 answered: ",
];
const SUFFIXES = [
  "",
  ".",
  '"',
  "!",
  " ",
  '","data":null}',
  "\n",
  " (trace id ab-cd)",
  "; see https://docs.example.com/errors",
  " [node 7]",
];
const HEX = /0x[0-9a-f]{3,}/gi;

interface Mutation {
  readonly shape: Shape;
  readonly failure: Failure;
}

function mutation(shape: Shape): fc.Arbitrary<Mutation> {
  const bare = WHOLE.has(shape.id);
  return fc
    .record({
      value: fc.integer({ min: 2, max: 9_999_999 }),
      hex: fc.bigInt({ min: 0x1000n, max: 2n ** 256n - 1n }).map((hash) => hash.toString(16)),
      casing: fc.constantFrom(
        (text: string) => text,
        (text: string) => text.toUpperCase(),
        (text: string) => text.toLowerCase(),
      ),
      prefix: fc.constantFrom(...(bare ? [""] : PREFIXES)),
      suffix: fc.constantFrom(...(bare ? ["", ".", "!"] : SUFFIXES)),
      quote: fc.constantFrom("'", '"', "`", "’"),
    })
    .map(({ value, hex, casing, prefix, suffix, quote }) => {
      const numbers = FIXED.has(shape.id)
        ? shape.message
        : shape.message.replace(NUMBER, () => String(value));
      const message = casing(numbers.replace(HEX, () => `0x${hex}`).replaceAll("'", quote));
      return { shape, failure: failureOf({ ...shape, message: prefix + message + suffix }) };
    });
}

describe("families of words", () => {
  const families = [...FAMILY_RULES, ...WEAK_FAMILY_RULES];

  it("hold nothing against a provider that a contract may have said", () => {
    const said: readonly string[] = [
      "caller lacks role, access refused",
      "process failed",
      "Router: EXPIRED",
      "Function does not exist",
      "engine stalled",
      "user key not permitted",
      "the vault's plan was cancelled for this month",
    ];
    for (const message of said) {
      const { effect } = judge(failureOf({ ...CALL, code: -32000, message }), "eth_call");
      assert.equal(effect.kind, "ignored", message);
    }
    for (const { category, methods } of families) {
      const effect = DECISIONS.get(category)?.[2];
      const harsh =
        typeof effect === "object" &&
        (effect.kind === "cordon" || (effect.kind === "failure" && effect.cause !== "timeout"));
      if (harsh && category !== "forbidden")
        assert.ok(
          methods?.every((group) => ["inert", "send", "other"].includes(group)),
          category,
        );
    }
  });

  it("never tell that a transaction is known: the node is asked for it", () => {
    assert.ok(families.every(({ category }) => DECISIONS.get(category)?.[1] !== "known"));
    for (const message of ["we have seen this tx before", "transaction received again"])
      assert.equal(
        judge(failureOf({ ...CALL, code: -32000, message }), "eth_sendRawTransaction").step,
        "verify",
        message,
      );
  });
});

describe("what surrounds the words of an error", () => {
  const read = (http: number, code: number | null, message: string, method = "eth_getBalance") =>
    judge(failureOf({ ...CALL, http, code, message, method }), method);

  it("HTTP bodies are judged by their words, pages by their status", () => {
    const limited = '{"message":"Too many requests, please try again later."}';
    assert.equal(read(503, null, limited).category, "rate_limit");
    assert.equal(read(503, null, '{"error":"node is still syncing"}').category, "lagging");
    assert.equal(read(502, null, '{"message":"Task timed out"}').category, "timeout");
    assert.equal(read(403, null, "Out of call volume quota").category, "quota");
    assert.equal(read(403, null, "Domain forbidden").category, "auth");
    assert.equal(read(404, null, '{"message":"API key not found"}').category, "auth");
    assert.equal(read(404, null, '{"error":"network foo not supported"}').category, "wrong_chain");
    const page = "<html><h1>Requests from your IP are not allowed: too many requests</h1></html>";
    assert.equal(read(503, null, page).category, "server");
  });

  it("a chain that is not served excludes the provider, a method named like one does not", () => {
    const message = "unsupported chain: xyz";
    assert.equal(read(200, -32601, message).category, "wrong_chain");
    for (const [code, text] of [
      [-32601, "unsupported chain"],
      [-32000, "unsupported chain"],
      [-32601, "the method unsupported chain does not exist"],
    ] as const)
      assert.notEqual(read(200, code, text, "unsupported chain").effect.kind, "cordon", text);
    assert.notEqual(read(200, -32000, message, "eth_call").effect.kind, "cordon");
    const refusal = "invalid argument 0: unknown chain";
    assert.notEqual(read(200, -32000, refusal).effect.kind, "cordon");
    const body = '{"error":"unknown chain is no address"}';
    assert.notEqual(read(400, null, body).effect.kind, "cordon");
  });

  it("the numbers of a message tell a pruned block from one that is yet to come", () => {
    const out = (height: number, asked: number) =>
      read(200, -32000, `block height is ${height} but requested was ${asked}`).category;
    assert.equal(out(100, 90), "pruned");
    assert.equal(out(100, 110), "block_ahead");
  });

  it("what chains call their blocks is a block where logs are searched", () => {
    const epochs = "invalid epoch range: too large (maximum: 2880)";
    assert.deepEqual(read(200, -32000, epochs, "eth_getLogs").effect, {
      kind: "learn",
      what: "range",
      maxBlockRange: 2_880,
    });
  });

  it("the reason in data decides where a message says only that a transaction is bad", () => {
    const send = (message: string, data: unknown) =>
      judge(failureOf({ ...CALL, code: 1010, message, data }), "eth_sendRawTransaction").category;
    assert.equal(send("Invalid Transaction", "account balance too low"), "insufficient_funds");
    assert.equal(send("Invalid Transaction", null), "tx_invalid");
  });

  it("a code that repeats an HTTP status counts as that where no words say more", () => {
    assert.equal(read(200, 401, "wrong").category, "auth");
    assert.equal(read(200, -32429, "no").category, "rate_limit");
    assert.equal(read(200, 502, "bad").category, "server");
    assert.equal(read(200, 502, "bad", "eth_sendRawTransaction").category, "tx_rejected");
  });
});

describe("mutated error shapes", () => {
  it("keep their category under other numbers, hashes, case, quotes and gateways", () => {
    for (const shape of SHAPES)
      fc.assert(
        fc.property(mutation(shape), ({ failure }) =>
          assert.equal(judge(failure, shape.method).category, shape.category),
        ),
        { numRuns: 25, seed: SEED },
      );
  });

  it(
    "keep their category when a gateway wraps them in data, except that nobody loses their place " +
      "by that",
    () => {
      const wraps = [
        (shape: Shape) => ({ code: -32603, message: "Internal error", data: shape.message }),
        (shape: Shape) => ({
          code: -32603,
          message: "Internal JSON-RPC error.",
          data: { code: shape.code, message: shape.message },
        }),
        (shape: Shape) => ({
          code: -32000,
          message: "upstream answered",
          data: { error: { code: shape.code, message: shape.message } },
        }),
      ];
      for (const shape of SHAPES.filter(isTelling)) {
        for (const wrap of wraps) {
          const failure: Failure = { ...failureOf(shape), httpStatus: 200, ...wrap(shape) };
          const { category, effect } = judge(failure, shape.method);
          if (cordons(shape.category))
            assert.notEqual(effect.kind, "cordon", `${shape.id} ${shape.message}`);
          else assert.equal(category, shape.category, `${shape.id} ${shape.message}`);
        }
      }
    },
  );

  it("say nothing about the provider when they are what a contract reverted with", () => {
    for (const { message } of [...SHAPES, ...CORPUS]) {
      for (const failure of [
        failureOf({ ...CALL, code: 3, message: `execution reverted: ${message}` }),
        failureOf({
          ...CALL,
          code: -32000,
          message: `execution reverted: ${message}`,
          data: "0x08c379a0",
        }),
        failureOf({
          ...CALL,
          code: -32603,
          message:
            "Error: VM Exception while processing transaction: reverted with reason string " +
            `'${message}'`,
        }),
        failureOf({
          ...CALL,
          code: -32015,
          message: "VM execution error.",
          data: `Reverted ${message}`,
        }),
      ]) {
        const { step, effect } = judge(failure, "eth_call");
        assert.deepEqual(
          { step, effect },
          { step: "return", effect: { kind: "ignored" } },
          message,
        );
      }
    }
  });

  it("never cost a provider its place or time when a caller's own parameter repeats them", () => {
    for (const { message } of [...SHAPES, ...CORPUS]) {
      for (const method of ["eth_getBalance", "eth_call", "eth_getLogs"]) {
        const { effect } = judge(
          failureOf({
            ...CALL,
            code: -32602,
            message: `invalid argument 0: cannot parse '${message}'`,
          }),
          method,
        );
        assert.ok(!["cordon", "failure"].includes(effect.kind), `${method}: ${message}`);
        const quoted = failureOf({
          ...CALL,
          code: -32602,
          message: `bad value "${message.slice(0, 200).replaceAll('"', "")}" for field 0`,
        });
        assert.equal(judge(quoted, method).effect.kind, "ignored", `${method}: ${message}`);
      }
    }
  });
});

const CALL: Recorded = {
  id: 0,
  vendor: "",
  http: 200,
  code: 3,
  method: "eth_call",
  message: "",
  data: null,
};

/** Whether the message alone says what it is: not its code, status or data. */
function isTelling(shape: Shape): boolean {
  if (shape.code === null) return false;
  const alone = { ...failureOf(shape), code: -32000, httpStatus: 200, data: null };
  return (
    decidingRule({ ...shape, code: -32000, http: 200, data: null })?.vague !== true &&
    judge(alone, shape.method).category === shape.category
  );
}

function cordons(category: string): boolean {
  const effect = DECISIONS.get(category)?.[2];
  return typeof effect === "object" && effect.kind === "cordon";
}
