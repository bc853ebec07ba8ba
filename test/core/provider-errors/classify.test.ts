// The error classifier against 235 recorded provider errors, the same under harmless variation, the
// traps between them, and hostile input.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Effect, Step, Verdict } from "../../../src/core/provider/attempt.ts";
import type { ErrorRule } from "../../../src/core/provider/profile.ts";
import { ERROR_CATEGORIES } from "../../../src/core/provider-errors/category.ts";
import { type ClassifyContext, classify } from "../../../src/core/provider-errors/classify.ts";
import type { Failure } from "../../../src/core/rpc/failure.ts";
import { methodOf } from "../../../src/core/rpc/method.ts";

interface Row {
  readonly id: number;
  readonly http: number;
  readonly code: number | null;
  readonly method: string | null;
  readonly message: string;
  readonly data: unknown;
  readonly class: string;
  readonly elsewhere: string;
  readonly health: string;
  readonly note: string | null;
}

const CORPUS: readonly Row[] = parseRows(
  readFileSync(new URL("../../data/provider-errors.json", import.meta.url), "utf8"),
);

/**
 * For rows that name no method: reads of several kinds, among them those whose errors are read in a
 * particular way.
 */
const ANY_READ = [
  "eth_getBalance",
  "eth_blockNumber",
  "eth_getBlockByNumber",
  "eth_getTransactionReceipt",
  "eth_call",
  "debug_traceTransaction",
];
const WALL_MS = Date.UTC(2025, 5, 15, 12, 0, 0);
const MINUTE_MS = 60_000;

/** The category of each class of the corpus, and of the rows that differ from their class. */
const CATEGORY_OF_CLASS: Readonly<Record<string, string>> = {
  RANGE: "block_range",
  RESULT: "result_size",
  FILTER: "filter_size",
  RATE: "rate_limit",
  RATE_SENDER: "sender_rate_limit",
  QUOTA: "quota",
  SERVER: "server",
  AUTH: "auth",
  AHEAD_OR_PRUNED: "block_missing",
  AHEAD: "block_ahead",
  PRUNED: "pruned",
  EXEC_INFO: "execution_info",
  LAG: "lagging",
  UNSUP_TAG: "tag_unsupported",
  UNSUP: "method_unsupported",
  UNSUP_SUB: "subscription_unsupported",
  DIALECT: "dialect",
  FILTER_LOST: "filter_lost",
  REVERT: "revert",
  HALT: "halt",
  TRACE_STATE: "trace_state",
  KNOWN: "tx_known",
  NONCE_LOW: "nonce_low",
  NONCE_GAP: "nonce_gap",
  UNDERPRICED: "underpriced",
  POOLPOLICY: "pool_policy",
  POOLFULL: "pool_full",
  FUNDS: "insufficient_funds",
  FEECAP: "fee_cap",
  TXBAD: "tx_invalid",
  PARAMS: "invalid_params",
  BATCH: "batch",
  PARSE: "parse",
  BADBODY: "bad_body",
  CONFIG: "wrong_chain",
  TIMEOUT: "timeout",
};
const CATEGORY_OF_ROW: Readonly<Record<number, string>> = {
  10: "filter_unaddressed",
  36: "range_unclear",
  43: "range_unclear",
  44: "logs_timeout",
  48: "quota_exhausted",
  109: "not_indexed",
  110: "not_indexed",
  165: "nonce_low",
  177: "replacement_underpriced",
  178: "replacement_underpriced",
  189: "pool_policy",
  197: "sequencer_pool_full",
  222: "trace_timeout",
  223: "execution_timeout",
  224: "cancelled",
  226: "server",
  228: "server",
  231: "network",
  232: "connection_rate_limit",
  233: "endpoint_missing",
};

/** A shape of answers to batches: the service sends none. */
const SHAPE_ONLY = new Set([214]);
/**
 * The corpus takes it for a broken provider; completions 10 and the issue say that a node's answer
 * to a transaction is an answer.
 */
const OVERRULED = new Set([189]);

const ROWS: readonly Row[] = CORPUS.filter((row) => !SHAPE_ONLY.has(row.id));

function categoryOf(row: Row): string {
  return CATEGORY_OF_ROW[row.id] ?? CATEGORY_OF_CLASS[row.class] ?? "missing from the test";
}

/**
 * Classes after which nobody knows what became of a transaction: the corpus says `other`, the
 * decision table says stop, and the table wins.
 */
const BROKEN_CLASSES = new Set(["SERVER", "TRANSPORT", "BADBODY"]);

/** The corpus column `elsewhere`, for the row's own method. */
function stepOf({ id, elsewhere, class: kind, method }: Row): Step {
  if (BROKEN_CLASSES.has(kind) && method === "eth_sendRawTransaction" && !OVERRULED.has(id))
    return "stop";
  if (elsewhere === "success") return "known";
  if (elsewhere === "verify") return "verify";
  if (kind === "BATCH") return "return";
  if (elsewhere.startsWith("split")) return "range";
  if (elsewhere.includes("other once")) return "next_once";
  if (elsewhere.startsWith("other")) return "next";
  assert.match(elsewhere, /^(no|same later)/);
  return "return";
}

/** The corpus column `health`. */
function effectOf(row: Row): Effect {
  switch (row.health) {
    case "none":
      return { kind: "ignored" };
    case "breaker":
      if (OVERRULED.has(row.id)) return { kind: "ignored" };
      return { kind: "failure", cause: row.class === "TIMEOUT" ? "timeout" : "server" };
    case "capability":
      return { kind: "learn", what: "range", maxBlockRange: lastNumber(row.message) };
    case "cooldown method":
      return { kind: "cooldown", ms: 30_000, scope: "method" };
    case "cooldown":
      return {
        kind: "cooldown",
        ms: /\/second|requests per second/i.test(row.message) ? 1_000 : 30_000,
      };
    case "cooldown long":
      return { kind: "cooldown", ms: 10 * MINUTE_MS };
    case "cordon long":
      return { kind: "cordon", reason: "quota" };
    case "cordon":
    case "cordon for chain":
      return { kind: "cordon", reason: row.class === "CONFIG" ? "wrong_chain" : "auth" };
    case "method learn":
      return { kind: "learn", what: "method" };
    case "tag learn":
      return { kind: "learn", what: "tag" };
    case "bound learn": {
      const oldest = /lowest height is (\d+)/i.exec(row.message)?.[1];
      return {
        kind: "learn",
        what: "pruned",
        ...(oldest === undefined ? {} : { oldest: Number(oldest) }),
      };
    }
    case "sub learn":
      return { kind: "learn", what: "subscription" };
    case "lag":
      return { kind: "lag" };
    default:
      return assert.fail(`health "${row.health}" is not mapped`);
  }
}

/** In every range refusal of the corpus that names a limit, the limit is the last number. */
function lastNumber(message: string): number | null {
  const last = message.match(/\d[\d,]*k?/gi)?.at(-1);
  return last === undefined
    ? null
    : Number(last.toLowerCase().replaceAll(",", "").replace("k", "000"));
}

function expected(row: Row): Verdict {
  return { category: categoryOf(row), step: stepOf(row), effect: effectOf(row) };
}

function failureOf(row: Row, changes: Partial<Failure> = {}): Failure {
  const kind = row.http === 0 ? "network" : row.code === null ? "body" : "error";
  return {
    kind,
    httpStatus: row.http,
    retryAfter: null,
    code: row.code,
    message: row.message,
    data: row.data,
    ...changes,
  };
}

function error(code: number | null, message: string, changes: Partial<Failure> = {}): Failure {
  return {
    kind: "error",
    httpStatus: 200,
    retryAfter: null,
    code,
    message,
    data: null,
    ...changes,
  };
}

function judge(
  failure: Failure,
  methodName: string,
  context: Partial<ClassifyContext> = {},
): Verdict {
  return classify(failure, methodOf(methodName), {
    methodName,
    rules: [],
    wallMs: WALL_MS,
    ...context,
  });
}

function methodsOf(row: Row): readonly string[] {
  return row.method === null ? ANY_READ : [row.method];
}

function check(
  cases: readonly (readonly [method: string, failure: Failure, category: string])[],
): void {
  for (const [method, failure, category] of cases)
    assert.equal(
      judge(failure, method).category,
      category,
      `${method}: ${failure.code} ${failure.message}`,
    );
}

function parseRows(text: string): readonly Row[] {
  return JSON.parse(text);
}

describe("the corpus of real provider errors", () => {
  it("is complete", () => assert.equal(CORPUS.length, 235));

  for (const row of ROWS) {
    it(`row ${row.id} ${row.class} "${row.message.slice(0, 60)}" is judged as recorded`, () => {
      for (const method of methodsOf(row))
        assert.deepEqual(judge(failureOf(row), method), expected(row), method);
    });
  }

  it(
    "keeps every row's judgement when case, numbers, surroundings, status and the form of data " +
      "vary",
    () => {
      for (const row of ROWS.filter((it) => !WORDLESS.has(it.id)))
        fc.assert(
          fc.property(variation(row), ({ varied, failure, method }) =>
            assert.deepEqual(judge(failure, method), expected(varied)),
          ),
          { numRuns: 40 },
        );
    },
  );

  it(
    "where the outcome of a transaction is unknown, the decision table (stop) wins over the " +
      "corpus (other)",
    () => {
      const refusedUnread = 233;
      const broken = ROWS.filter(
        (row) =>
          BROKEN_CLASSES.has(row.class) && !OVERRULED.has(row.id) && row.id !== refusedUnread,
      );
      assert.equal(broken.length, 16);
      for (const row of broken) {
        const { category, effect } = judge(failureOf(row), "eth_getBalance");
        assert.deepEqual(
          judge(failureOf(row), "eth_sendRawTransaction"),
          { category, step: "stop", effect },
          `row ${row.id}`,
        );
      }
    },
  );

  it("sends a call that is not replay-safe elsewhere only when it was certainly refused", () => {
    const next = new Set([
      "rate_limit",
      "quota",
      "quota_exhausted",
      "auth",
      "wrong_chain",
      "lagging",
      "endpoint_missing",
      "method_unsupported",
    ]);
    for (const row of ROWS.filter(({ method }) => method === null)) {
      const { category, step } = judge(failureOf(row), "vendor_doSomething");
      const broken = [
        "server",
        "network",
        "bad_body",
        "cancelled",
        "connection_rate_limit",
        "timeout",
      ].includes(category);
      assert.equal(
        step,
        next.has(category) ? "next" : broken ? "stop" : "return",
        `row ${row.id} ${category}`,
      );
    }
  });
});

/** Rows whose numbers are the message. */
const FIXED_NUMBERS = new Set([30, 62, 135, 228]);
/** Rows that count as a whole message only. */
const WHOLE_ONLY = new Set([188]);
/** Says nothing at all. */
const WORDLESS = new Set([132]);
const NUMBER = /(?<![\w.])\d[\d,]*(?![\w.]|,\d)/g;

interface Varied {
  readonly varied: Row;
  readonly failure: Failure;
  readonly method: string;
}

function variation(row: Row): fc.Arbitrary<Varied> {
  const prefixes = WHOLE_ONLY.has(row.id)
    ? ["", '"', "  "]
    : [
        "",
        '"',
        "rpc error: ",
        "Error: ",
        "upstream said: ",
        "rpc error: code = Unknown desc = ",
        '{"code":-32000,"message":"',
        "[eth] ",
      ];
  const suffixes = WHOLE_ONLY.has(row.id)
    ? ["", ".", '"', "!"]
    : ["", ".", '"', "!", " ", '","data":null}', "\n", " (trace id ab-cd)"];
  return fc
    .record({
      numbers: fc.array(fc.tuple(fc.integer({ min: 1, max: 9_999_999 }), fc.boolean()), {
        minLength: 4,
        maxLength: 4,
      }),
      casing: fc.constantFrom<(text: string, bits: number) => string>(asIs, upper, lower, mixed),
      bits: fc.integer({ min: 1 }),
      prefix: fc.constantFrom(...prefixes),
      suffix: fc.constantFrom(...suffixes),
      status: fc.constantFrom(200, 400, 404, 422, 500, row.http),
      method: fc.constantFrom(...methodsOf(row)),
      data: dataLike(row.data),
    })
    .map(({ numbers, casing, bits, prefix, suffix, status, method, data }) => {
      const message = FIXED_NUMBERS.has(row.id) ? row.message : withNumbers(row.message, numbers);
      const failure = failureOf(row, { message: prefix + casing(message, bits) + suffix, data });
      return {
        varied: { ...row, message },
        method,
        failure: failure.kind === "error" ? { ...failure, httpStatus: status } : failure,
      };
    });
}

function withNumbers(message: string, numbers: readonly (readonly [number, boolean])[]): string {
  let used = 0;
  return message.replace(NUMBER, () => {
    const [value, commas] = numbers[used++ % numbers.length] ?? [1, false];
    return commas ? value.toLocaleString("en-US") : String(value);
  });
}

function dataLike(data: unknown): fc.Arbitrary<unknown> {
  if (data === null)
    return fc.constantFrom<unknown>(null, undefined, {}, "", [], { trace_id: "5f0c1c" }, "0x");
  const text = typeof data === "string" ? data : undefined;
  const message =
    typeof data === "object" && data !== null && "message" in data ? data.message : text;
  if (message === undefined) return fc.constant(data);
  return fc.constantFrom<unknown>(
    message,
    { message },
    { error: { message } },
    { code: -32000, message, details: null },
  );
}

function asIs(text: string): string {
  return text;
}

function upper(text: string): string {
  return text.toUpperCase();
}

function lower(text: string): string {
  return text.toLowerCase();
}

function mixed(text: string, bits: number): string {
  return Array.from(text, (char, i) =>
    (bits >> (i % 30)) & 1 ? char.toUpperCase() : char.toLowerCase(),
  ).join("");
}

describe("traps between neighbouring shapes", () => {
  it("reads a limit on logs as a limit, never as an unsupported method, a rate limit or a quota", () => {
    check([
      [
        "eth_getLogs",
        error(35, "ranges over 10000 blocks are not supported on freetier"),
        "block_range",
      ],
      [
        "eth_getLogs",
        error(-32008, "Response is too big", { data: "Exceeded max limit of 167772160" }),
        "result_size",
      ],
      ["eth_getLogs", error(-32000, "query exceeds limit"), "result_size"],
      [
        "eth_getLogs",
        error(
          -32600,
          "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block " +
            "range",
        ),
        "result_size",
      ],
      ["eth_getLogs", error(-32012, "anything at all"), "range_unclear"],
      ["eth_getLogs", error(-32012, "eth_getLogs is limited to a 10,000 range"), "range_unclear"],
      ["eth_getLogs", error(-32012, "backend over capacity"), "rate_limit"],
      ["eth_getLogs", error(-32012, "api credits limited to 1000000"), "quota"],
      ["eth_getLogs", error(-32005, "limit exceeded"), "range_unclear"],
      ["eth_getBalance", error(-32005, "limit exceeded"), "rate_limit"],
      ["eth_getLogs", error(-32005, "daily request count exceeded, request rate limited"), "quota"],
      [
        "eth_getLogs",
        error(429, "Your app has exceeded its compute units per second capacity."),
        "rate_limit",
      ],
      [
        "eth_getLogs",
        error(-32000, "block range extends beyond current head block"),
        "block_ahead",
      ],
    ]);
  });

  it("tells an upside-down range, which no provider can serve, from one that is too large", () => {
    const failure = error(-32602, "Invalid block range");
    assert.equal(
      judge(failure, "eth_getLogs", { block: { kind: "range", from: 20, to: 10 } }).step,
      "return",
    );
    assert.equal(
      judge(failure, "eth_getLogs", { block: { kind: "range", from: 10, to: 20 } }).step,
      "range",
    );
    assert.equal(
      judge(failure, "eth_getLogs", { block: { kind: "range", from: null, to: 20 } }).step,
      "range",
    );
    check([["eth_getLogs", error(-32000, "invalid block range params"), "invalid_params"]]);
  });

  it("learns exactly the range that is named, whatever else the text counts", () => {
    const named: readonly (readonly [string, number | null])[] = [
      ["requested too many blocks from 100 to 5000, maximum is set to 2048", 2048],
      ["eth_getLogs is limited to a 10,000 range", 10_000],
      ["range 1000000 exceeds limit of 10000", 10_000],
      [
        "block range is larger than max block range, block range = 5120, max block range = 5000",
        5000,
      ],
      ["range 9009594 is bigger than range limit 2000", 2000],
      ["query block range exceeds server limit, narrow your filter: 5", 5],
      ["eth_getLogs is limited to 0 - 10000 blocks range", 10_000],
      ["eth_getLogs is limited to 0-10000 blocks range", 10_000],
      ["block range limit exceeded (100000 > 10000)", 10_000],
      [
        "You can make eth_getLogs requests with up to a 500 block range. This block range " +
          "should work: [0x123c9b2, 0x123cba5]",
        500,
      ],
      ["eth_getLogs range is too large, max is 1k blocks", 1000],
      ["Block range limit exceeded. See https://docs.example.com/limits/v2 (-32005)", null],
      ["block range is too wide", null],
      ["block range too large for a limit of 10,000 results", null],
    ];
    for (const [message, maxBlockRange] of named) {
      assert.deepEqual(
        judge(error(-32000, message), "eth_getLogs"),
        {
          category: "block_range",
          step: "range",
          effect: { kind: "learn", what: "range", maxBlockRange },
        },
        message,
      );
    }
    const inData = error(-32602, "invalid params", {
      data: { error_id: "4ed94073", payload: "range 9009594 is bigger than range limit 2000" },
    });
    assert.deepEqual(judge(inData, "eth_getLogs").effect, {
      kind: "learn",
      what: "range",
      maxBlockRange: 2000,
    });
  });

  it("learns the oldest block that a refusal of old ones names", () => {
    for (const [message, oldest] of [
      ["height 123 is not available, lowest height is 100", 100],
      ["block 5000 has been pruned; earliest available is 1000000", 1_000_000],
      [
        "old data not available due to pruning: history is available from block 22000000",
        22_000_000,
      ],
      ["state of block 0x5 was pruned, the oldest available block is 0x1f4", 500],
      ["block 5 has been pruned", undefined],
      ["the earliest blocks have been pruned", undefined],
    ] as const)
      assert.deepEqual(
        judge(error(-32000, message), "eth_getBlockReceipts").effect,
        { kind: "learn", what: "pruned", ...(oldest === undefined ? {} : { oldest }) },
        message,
      );
  });

  it("never blames the provider's credentials, quota or chain for words that came from the caller", () => {
    const words = [
      "invalid api key",
      "unauthorized",
      "Must be authenticated!",
      "monthly capacity limit exceeded",
      "rate limit exceeded",
      "invalid chain id, expected 1",
      "node is syncing",
    ];
    for (const word of words) {
      check([
        ["eth_call", error(3, `execution reverted: ${word}`, { data: "0x08c379a0" }), "revert"],
        [
          "eth_call",
          error(-32000, `VM Exception while processing transaction: revert ${word}`),
          "revert",
        ],
        ["eth_call", error(3, word), "revert"],
        ["eth_call", error(-32000, word, { data: "0x08c379a000000000" }), "revert"],
        [
          "eth_call",
          error(-32603, "Internal JSON-RPC error.", {
            data: { code: 3, message: `execution reverted: ${word}` },
          }),
          "revert",
        ],
        [
          "vendor_x",
          error(-32601, `the method ${word} does not exist/is not available`),
          "method_unsupported",
        ],
        [
          "vendor_x",
          error(-32601, `the method ${"x".repeat(500)} ${word} does not exist/is not available`),
          "method_unsupported",
        ],
        [
          "vendor_x",
          error(-32600, `Unsupported method: ${word}. See available methods`),
          "method_unsupported",
        ],
        [
          "eth_call",
          error(-32602, `invalid argument 1: hex string "${word}" without 0x prefix`),
          "invalid_params",
        ],
        [
          "eth_call",
          error(-32602, `unknown variant \`${word}\`, expected one of \`latest\``),
          "invalid_params",
        ],
        [
          "eth_call",
          error(-32602, `Invalid block, unable to parse RPC parameter ${word}`),
          "invalid_params",
        ],
      ]);
      assert.notEqual(
        judge(error(-32602, "Invalid params", { data: word }), "eth_call").effect.kind,
        "cordon",
      );
    }
    check([
      ["eth_sendRawTransaction", error(-32000, "invalid chain id, expected 1"), "tx_invalid"],
    ]);
  });

  it("lets HTTP 403 and 401 speak only where the words do not", () => {
    check([
      [
        "eth_getBalance",
        error(-32602, "Archive requests require a personal token.", { httpStatus: 403 }),
        "pruned",
      ],
      [
        "eth_getBalance",
        error(-32001, "rpc method is not whitelisted", { httpStatus: 403 }),
        "method_unsupported",
      ],
      ["eth_getBalance", error(-32000, "execution reverted", { httpStatus: 401 }), "revert"],
      [
        "eth_getBalance",
        error(-32600, "Monthly capacity limit exceeded. Visit https://example.com/billing", {
          httpStatus: 403,
        }),
        "quota_exhausted",
      ],
      ["eth_getBalance", error(-32000, "no", { httpStatus: 401 }), "auth"],
      ["eth_getBalance", error(-32000, "no", { httpStatus: 403 }), "refused"],
      ["eth_getBalance", error(-32000, "no", { httpStatus: 402 }), "quota"],
      ["eth_getBalance", error(-32000, "no", { httpStatus: 429 }), "rate_limit"],
      ["eth_getBalance", error(-32000, "no", { httpStatus: 503 }), "server"],
      ["eth_getBalance", error(-32000, "no", { httpStatus: 404 }), "unknown"],
      ["eth_getBalance", error(-32602, "no", { httpStatus: 500 }), "invalid_params"],
    ]);
  });

  it("knows execution failures that sound like limits, and limits that sound like executions", () => {
    check([
      ["eth_call", error(-32000, "stack limit reached 1024 (1023)"), "halt"],
      ["eth_call", error(-32000, "max code size exceeded"), "halt"],
      ["eth_call", error(-32016, "The execution failed due to an exception."), "revert"],
      ["eth_call", error(-32016, "over rate limit"), "rate_limit"],
      ["eth_call", error(3, "Unknown block"), "block_missing"],
      ["eth_call", error(-32015, "gateway timeout"), "timeout"],
      ["eth_call", error(-32015, "odd words"), "revert"],
      ["eth_getBalance", error(-32000, "contract could not be found"), "execution_info"],
      ["eth_getBalance", error(-32000, "block could not be found"), "block_missing"],
      ["eth_getBalance", error(-32601, "Parse error"), "parse"],
      ["eth_getBalance", error(-32603, "anything"), "server"],
      ["eth_getBalance", error(-32001, "Exceeded the quota usage"), "rate_limit"],
      [
        "eth_getBalance",
        error(-32005, "You've exceeded the RPS limit available on the current plan."),
        "rate_limit",
      ],
      [
        "debug_traceCall",
        error(-32000, "insufficient funds for gas * price + value"),
        "insufficient_funds",
      ],
      [
        "trace_replayTransaction",
        error(-32000, "insufficient funds for gas * price + value"),
        "trace_state",
      ],
    ]);
  });

  it("accepts as known only what is known, and verifies what may be", () => {
    const known = judge(error(-32003, "already known"), "eth_sendRawTransaction");
    assert.deepEqual(known, { category: "tx_known", step: "known", effect: { kind: "ignored" } });
    assert.equal(
      judge(error(-32010, "OwnNonceAlreadyUsed"), "eth_sendRawTransaction").step,
      "verify",
    );
    assert.equal(
      judge(error(-32000, "unknown transaction"), "eth_sendRawTransaction").step,
      "return",
    );
    assert.equal(judge(error(-32003, "anything else"), "eth_sendRawTransaction").step, "return");
    assert.equal(judge(error(-32603, "rejected"), "eth_sendRawTransaction").step, "next");
    assert.equal(
      judge(error(-32603, "transaction rejected by policy"), "eth_sendRawTransaction").step,
      "next",
    );
    assert.notEqual(judge(error(-32000, "already known"), "eth_getBalance").step, "known");
    for (const other of [
      "another transaction is already pending for this account",
      "a transaction with this nonce is already queued",
      "sender already has a transaction in the pool",
      "nonce 5 is already in the pool",
      "a different tx is already in the mempool",
    ])
      assert.equal(judge(error(-32000, other), "eth_sendRawTransaction").step, "verify", other);
  });
});

describe("shapes beyond the corpus", () => {
  it("that wrap what a sequencer thinks of a nonce count against nobody", () => {
    const wrapped = [
      "failed to forward tx to sequencer, please try again. Error message: 'nonce too low'",
      "failed to forward tx to sequencer: tx nonce 5 < account nonce 9",
      "failed to relay the transaction: old nonce",
      "failed to forward tx: InvalidNonce",
    ];
    for (const method of ["eth_sendRawTransaction", "vendor_submit", "eth_estimateGas"])
      for (const message of wrapped) {
        const { category, effect } = judge(error(-32000, message), method);
        assert.deepEqual([category, effect.kind], ["nonce_low", "ignored"], `${method} ${message}`);
      }
    const plain = "failed to forward tx to sequencer, please try again.";
    for (const data of ["nonce too low", { code: -32000, message: "nonce too low" }])
      assert.equal(
        judge(error(-32603, plain, { data }), "eth_sendRawTransaction").category,
        "nonce_low",
      );
    assert.equal(judge(error(-32000, plain), "eth_sendRawTransaction").category, "server");
  });

  it("by which a relay only says that it failed count against it, whatever was called", () => {
    for (const message of ["error invoking RPC", "[Request ID: 1-2] Error invoking RPC"])
      for (const method of ["eth_call", "eth_getLogs", "eth_getBalance", "eth_sendRawTransaction"])
        for (const code of [-32000, -32603])
          assert.equal(judge(error(code, message), method).category, "server", method);
    const told =
      "Error invoking RPC: transaction 0.0.5@1.2 failed precheck with status WRONG_NONCE";
    assert.equal(judge(error(-32603, told), "eth_sendRawTransaction").effect.kind, "ignored");
  });

  it("of nodes", () => {
    check([
      [
        "eth_call",
        error(
          -32000,
          "missing trie node c6ebfa185e (path ) state 0xc6ebfa is not available, not found",
        ),
        "pruned",
      ],
      ["eth_call", error(4444, "pruned history unavailable"), "pruned"],
      ["eth_call", error(-32000, "No state available for block 0x1"), "pruned"],
      ["eth_call", error(-32000, "World state unavailable"), "pruned"],
      [
        "eth_getProof",
        error(-32602, "distance to target block exceeds maximum proof window"),
        "pruned",
      ],
      ["eth_call", error(-32000, "state recreation l2 gas depth limit exceeded"), "pruned"],
      [
        "eth_call",
        error(
          -32000,
          "This request is not supported because your node is running with state pruning. Run " +
            "with --pruning=archive.",
        ),
        "pruned",
      ],
      ["eth_getBalance", error(-32001, "Resource not found."), "block_missing"],
      [
        "eth_getBlockReceipts",
        error(-32000, "could not find block for height 826401374464"),
        "block_missing",
      ],
      [
        "eth_call",
        error(-32602, "BlockOutOfRangeError: block height is 5 but requested was 10"),
        "block_ahead",
      ],
      ["eth_call", error(-32019, "block is out of range"), "block_ahead"],
      ["eth_call", error(-32000, "cannot query unfinalized data"), "block_ahead"],
      ["eth_getBlockByNumber", error(-39001, "finalized block not found"), "tag_unsupported"],
      [
        "eth_call",
        error(3, "execution reverted: ERC20: insufficient allowance", { data: "0x08c379a0" }),
        "revert",
      ],
      ["eth_call", error(-32003, "Out of gas: gas required exceeds allowance: 0"), "halt"],
      ["eth_call", error(-32000, "out of gas"), "halt"],
      ["eth_estimateGas", error(-32000, "insufficient funds for transfer"), "insufficient_funds"],
      [
        "eth_call",
        error(
          -32000,
          "err: max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, " +
            "baseFee: 7 (supplied gas 50000000)",
        ),
        "underpriced",
      ],
      [
        "eth_call",
        error(-32603, "EVM error Database(GetAccount(0x1, connection refused))"),
        "server",
      ],
      ["eth_call", error(-32000, "invalid chain ID"), "tx_invalid"],
      [
        "eth_sendRawTransaction",
        error(-32003, "nonce too low: next nonce 5, tx nonce 3"),
        "nonce_low",
      ],
      ["eth_sendRawTransaction", error(-32003, "transaction already imported"), "tx_known"],
      ["eth_sendRawTransaction", error(-32000, "tx already exists in cache"), "tx_known"],
      [
        "eth_sendRawTransaction",
        error(-32000, "only replay-protected (EIP-155) transactions allowed over RPC"),
        "node_policy",
      ],
      [
        "eth_sendRawTransaction",
        error(-32000, "in-flight transaction limit reached for delegated accounts"),
        "pool_policy",
      ],
      [
        "eth_sendRawTransaction",
        error(-32000, "Upfront cost exceeds account balance"),
        "insufficient_funds",
      ],
      [
        "eth_sendRawTransaction",
        error(-32000, "rlp: expected input list for types.LegacyTx"),
        "tx_invalid",
      ],
      [
        "eth_sendRawTransaction",
        error(-32602, "failed to decode signed transaction"),
        "tx_invalid",
      ],
      [
        "eth_sendRawTransaction",
        error(-32000, "max priority fee per gas higher than max fee per gas"),
        "tx_invalid",
      ],
      [
        "eth_sendRawTransaction",
        error(-32000, "max initcode size exceeded: code size 60000, limit 49152"),
        "tx_invalid",
      ],
      [
        "eth_sendRawTransactionSync",
        error(4, "The transaction was added to the mempool but wasn't processed within 20s."),
        "tx_pending",
      ],
    ]);
  });

  it("of EIP-7966 by method and code, whatever words come with them", () => {
    const words = ["rate limit exceeded", "unauthorized", "already known", "internal error", ""];
    for (const method of ["eth_sendRawTransactionSync", "realtime_sendRawTransaction"])
      for (const message of words) {
        for (const [code, category] of [
          [4, "tx_pending"],
          [5, "tx_not_executable"],
          [6, "tx_not_executable"],
        ] as const)
          assert.deepEqual(
            judge(error(code, message, { data: `0x${"ab".repeat(32)}` }), method),
            { category, step: "return", effect: { kind: "ignored" } },
            `${method} ${code} ${message}`,
          );
      }
    assert.equal(judge(error(4, "rate limit exceeded"), "eth_call").category, "rate_limit");
    assert.equal(judge(error(5, "already known"), "eth_sendRawTransaction").category, "tx_known");
  });

  it("of hosted providers", () => {
    check([
      ["eth_getBalance", error(-32005, "Too Many Requests"), "rate_limit"],
      ["eth_getBalance", error(429, "Your app has exceeded its throughput limit"), "rate_limit"],
      ["eth_getBalance", error(-32097, "busy"), "rate_limit"],
      [
        "eth_getBalance",
        error(
          -32000,
          '429 Too Many Requests: {"jsonrpc":"2.0","error":{"code":-32016,"message":"over rate ' +
            'limit"},"id":2239375}',
        ),
        "rate_limit",
      ],
      [
        "eth_getBalance",
        error(-32003, "daily request limit reached - upgrade your account"),
        "quota",
      ],
      [
        "eth_getBalance",
        error(
          -32600,
          "ETH_MAINNET is not enabled for this app. Visit this page to enable the network",
        ),
        "auth",
      ],
      ["eth_getBalance", error(401, "invalid api key"), "auth"],
      [
        "eth_getBlockReceipts",
        error(
          -32600,
          "eth_getBlockReceipts is not available on the Free tier - upgrade to Pay As You Go",
        ),
        "method_unsupported",
      ],
      [
        "trace_block",
        error(35, "method is not available on freetier, please upgrade to paid tier"),
        "method_unsupported",
      ],
      [
        "eth_getBalance",
        error(-32002, "Archive, Debug and Trace requests are not available on your current plan."),
        "pruned",
      ],
      [
        "debug_traceTransaction",
        error(-32002, "Archive, Debug and Trace requests are not available on your current plan."),
        "method_unsupported",
      ],
      ["eth_getBalance", error(-32011, "no backends available for method"), "server"],
      ["eth_getBalance", error(-32014, "too many RPC calls in batch request"), "batch"],
      ["eth_getLogs", error(-32020, "backend response too large"), "result_size"],
      ["debug_traceTransaction", error(-32008, "Response is too big"), "response_size"],
      [
        "eth_getBalance",
        error(-32603, "Internal error", { data: "header not found" }),
        "block_missing",
      ],
      ["eth_getBalance", error(null, "Rate limit exceeded"), "rate_limit"],
      ["eth_subscribe", error(-32601, "Method not found"), "subscription_unsupported"],
    ]);
  });

  it("of every row and phrase of the table that the corpus does not reach", () => {
    const spoken: Readonly<
      Record<string, readonly (readonly [method: string, ...messages: readonly string[]])[]>
    > = {
      revert: [
        [
          "eth_call",
          "revert",
          "Reverted",
          "Error: revert: not owner",
          "transaction reverted",
          "call reverted",
          "reverted with reason string 'no'",
        ],
      ],
      halt: [
        [
          "eth_call",
          "opcode not found",
          "stack underflow (0 <=> 2)",
          "stack overflow",
          "gas uint64 overflow",
          "evm: bad jump destination",
          "Bad instruction fe",
          "write protection",
          "return data out of bounds",
        ],
        [
          "eth_call",
          "max call depth exceeded",
          "contract address collision",
          "invalid code: must not begin with 0xef",
          "gas required exceeds allowance (1) or always failing transaction",
        ],
      ],
      server: [
        [
          "eth_call",
          "database error: closed",
          "failed to get account for 0x1: connection refused",
          "failed to get storage for 0x1",
          "Internal server error",
          "bad gateway",
          "503 Service Unavailable",
        ],
        [
          "eth_call",
          "temporarily unavailable",
          "server is busy",
          "node overloaded",
          "method handler crashed",
          "dial tcp: connection refused",
          "no healthy upstream",
          "all upstreams failed",
        ],
      ],
      batch: [
        [
          "eth_call",
          "validation errors in batch",
          "batch too large",
          "batch size exceeds the limit",
        ],
      ],
      subscription_unsupported: [
        ["eth_subscribe", "subscription kind not supported", "unsupported", "please use websocket"],
      ],
      invalid_params: [
        [
          "eth_call",
          "too many arguments, want at most 2",
          "missing field `to`",
          "invalid type: boolean",
          "invalid value: 5",
          "invalid length 0",
          "Failed to deserialize the JSON body",
          "Missing required json rpc parameter",
          "invalid address",
        ],
        [
          "eth_getLogs",
          "fromBlock is greater than toBlock",
          "begin block 9 must be before end block",
        ],
      ],
      trace_state: [
        ["debug_traceTransaction", "txIndex 1: nonce too low"],
        ["trace_block", "nonce too high"],
      ],
      sender_rate_limit: [["eth_sendRawTransaction", "sender is over rate limit"]],
      replacement_underpriced: [
        [
          "eth_sendRawTransaction",
          "ReplacementNotAllowed",
          "replacement not allowed",
          "gas price too low to replace",
          "could not replace existing tx",
          "insufficient fee to replace",
          "future transaction tries to replace pending",
        ],
      ],
      nonce_low: [
        [
          "eth_sendRawTransaction",
          "incorrect nonce",
          "invalid nonce; got 5, expected 6",
          "nonce has already been used",
          "nonce already used",
          "account sequence mismatch, expected 2, got 1",
        ],
      ],
      nonce_gap: [
        [
          "eth_sendRawTransaction",
          "NonceGap",
          "nonce gap",
          "NonceTooFarInFuture",
          "Transaction nonce is too distant from current sender nonce",
        ],
      ],
      pool_policy: [
        [
          "eth_sendRawTransaction",
          "account limit exceeded",
          "PendingTxsOfConflictingType",
          "address already reserved",
        ],
      ],
      underpriced: [
        [
          "eth_sendRawTransaction",
          "transaction underpriced",
          "gas price too low",
          "max fee per blob gas less than block blob gas fee",
          "FeeTooLow",
        ],
      ],
      insufficient_funds: [
        [
          "eth_sendRawTransaction",
          "sender doesn't have enough funds to send tx",
          "lack of funds (0) for max fee",
        ],
      ],
      pool_full: [
        ["eth_sendRawTransaction", "mempool is full", "tx pool overflow", "transaction queue full"],
      ],
      sequencer_pool_full: [["eth_sendRawTransaction", "the sequencer queue is full"]],
      tx_known: [
        [
          "eth_sendRawTransaction",
          "tx already in mempool",
          "transaction already exists",
          "already in the system",
        ],
      ],
      tx_invalid: [
        [
          "eth_sendRawTransaction",
          "GasLimitExceeded",
          "transaction gas limit too high (cap: 16777216, tx: 30000000)",
          "exceeds max transaction gas limit",
          "nonce has max value",
          "sender not an eoa",
          "sender is not an EOA",
          "SenderIsContract",
        ],
        [
          "eth_sendRawTransaction",
          "MaxTxSizeExceeded",
          "chain id mismatch",
          "chainId does not match node's",
          "unsupported tx type",
          "InvalidTxType",
          "NotSupportedTxType",
          "invalid signature",
          "transaction could not be decoded",
        ],
        [
          "eth_sendRawTransaction",
          "typed transaction too short",
          "invalid transaction",
          "negative value",
          "missing sidecar for blob transaction",
        ],
        ["eth_call", "intrinsic gas too high -- CallGasCostMoreThanGasLimit"],
      ],
      result_size: [["eth_getLogs", "too many logs", "result set too large"]],
      filter_unaddressed: [["eth_getLogs", "please specify an address"]],
      filter_size: [["eth_getLogs", "too many addresses", "too many topics", "exceed max topics"]],
      block_range: [["trace_filter", "block range too high"]],
      range_unclear: [["eth_getLogs", "limit exceeded"]],
      method_unsupported: [
        [
          "trace_block",
          "rpc call is not whitelisted",
          "not implemented",
          "debug namespace is disabled",
          "tracing is not enabled",
        ],
      ],
      tag_unsupported: [
        [
          "eth_getBalance",
          "unsupported block tag",
          "pending state is not available",
          "safe block not found",
        ],
      ],
      pruned: [
        [
          "eth_getBalance",
          "no historical RPC is available",
          "state is not available",
          "state already discarded: historical data",
          "Archive state is needed",
          "earliest block is 100",
        ],
      ],
      quota: [
        [
          "eth_getBalance",
          "compute unit quota exceeded",
          "you have exceeded your quota",
          "out of credits",
          "not enough compute units",
          "Payment Required",
        ],
      ],
      quota_exhausted: [["eth_getBalance", "Monthly request limit reached"]],
      rate_limit: [
        [
          "eth_getBalance",
          "project ID request rate exceeded",
          "The requests per second of your requests are higher than your plan allows",
          "exceeded its concurrent requests capacity",
          "request throttled",
          "limit exceeded",
          "call rate exceeded",
        ],
      ],
      auth: [
        [
          "eth_getBalance",
          "Unauthorized",
          "authentication required",
          "token has expired",
          "project id does not have access",
          "missing api key",
        ],
      ],
      filter_lost: [["eth_getFilterChanges", "filter does not exist"]],
      block_ahead: [
        [
          "eth_getBalance",
          "future block",
          "block 9 is in the future",
          "block number is higher than latest",
          "block 9 has not yet been produced: block not yet mined",
        ],
      ],
      not_indexed: [
        [
          "eth_getTransactionReceipt",
          "transaction indexing is in progress",
          "block is being indexed",
          "not indexed",
        ],
      ],
      lagging: [
        [
          "eth_getBalance",
          "node is not synced",
          "not in sync",
          "out of sync",
          "still synchronizing",
          "node is behind",
        ],
      ],
      block_missing: [
        [
          "eth_getBalance",
          "header for hash not found",
          "unknown header",
          "block is not canonical",
          "failed to get block",
        ],
      ],
      response_size: [["debug_traceTransaction", "result too large"]],
      request_size: [["eth_sendRawTransaction", "request body too large", "payload too large"]],
      logs_timeout: [
        ["eth_getLogs", "query timeout", "context deadline exceeded", "query took too long"],
      ],
      trace_timeout: [
        ["debug_traceBlockByNumber", "execution aborted", "timed out", "context deadline exceeded"],
      ],
      execution_timeout: [["eth_call", "execution timeout"]],
      timeout: [
        ["eth_getBalance", "request timed out", "context deadline exceeded", "took too long"],
      ],
      unknown: [
        [
          "eth_getBalance",
          "key not found",
          "account not found",
          "invalid token '<' at 0",
          "state of the art",
        ],
      ],
    };
    for (const [category, groups] of Object.entries(spoken)) {
      for (const [method, ...messages] of groups)
        check(messages.map((message) => [method, error(-32000, message), category]));
    }
    check([
      ["eth_call", error(-32700, "odd"), "parse"],
      ["eth_call", error(-32612, "odd"), "method_unsupported"],
      ["eth_sendRawTransaction", error(-32017, "odd"), "tx_rejected"],
      ["eth_sendRawTransaction", error(-32017, "odd", { httpStatus: 429 }), "sender_rate_limit"],
      ["eth_sendRawTransaction", error(-32003, "odd"), "tx_rejected"],
      ["eth_call", error(-32003, "odd"), "tx_invalid"],
      ["eth_call", error(-32000, "odd", { data: "header not found" }), "block_missing"],
      ["eth_getLogs", error(-32614, "odd"), "block_range"],
      ["eth_call", error(-32600, "Invalid Request"), "invalid_params"],
      ["eth_call", error(-32602, "unexpected argument"), "invalid_params"],
      ["eth_getLogs", error(-32000, "odd", { httpStatus: 413 }), "range_unclear"],
      ["eth_call", error(-32000, "odd", { httpStatus: 413 }), "response_size"],
    ]);
  });

  it("of bodies that are no JSON-RPC answer, by status and, for refusals, by words", () => {
    const body = (httpStatus: number, message = "<html></html>"): Failure => ({
      kind: "body",
      httpStatus,
      retryAfter: null,
      code: null,
      message,
      data: null,
    });
    check([
      ["eth_getBalance", body(429), "rate_limit"],
      ["eth_getBalance", body(403, "error code: 1015"), "rate_limit"],
      ["eth_getBalance", body(429, '{"error":"Monthly quota exceeded"}'), "quota_exhausted"],
      ["eth_getBalance", body(401), "auth"],
      ["eth_getBalance", body(403, '{"message":"Invalid API key"}'), "auth"],
      ["eth_getBalance", body(403), "forbidden"],
      ["eth_getBalance", body(402), "quota"],
      ["eth_getBalance", body(404), "endpoint_missing"],
      ["eth_getBalance", body(301), "endpoint_missing"],
      ["eth_getBalance", body(410), "endpoint_missing"],
      ["eth_getBalance", body(529), "rate_limit"],
      ["eth_getBalance", body(403, "out of credits"), "quota"],
      ["eth_getBalance", body(408), "timeout"],
      ["eth_getBalance", body(413), "request_size"],
      ["eth_getBalance", body(400), "bad_body"],
      ["eth_getBalance", body(500), "server"],
      ["eth_getBalance", body(530), "server"],
      [
        "eth_getBalance",
        body(200, '{"status":"0","result":"Max calls per sec rate limit reached"}'),
        "rate_limit",
      ],
      ["eth_getBalance", body(200, "invalid api key"), "bad_body"],
    ]);
  });

  it("of the connection: sent or not decides for whatever is not replay-safe", () => {
    const lost = (kind: Failure["kind"]): Failure => ({
      kind,
      httpStatus: 0,
      retryAfter: null,
      code: null,
      message: "ECONNREFUSED invalid api key",
      data: null,
    });
    assert.deepEqual(judge(lost("unsent"), "eth_sendRawTransaction"), {
      category: "unsent",
      step: "next",
      effect: { kind: "failure", cause: "network" },
    });
    assert.deepEqual(judge(lost("network"), "eth_sendRawTransaction"), {
      category: "network",
      step: "stop",
      effect: { kind: "failure", cause: "server" },
    });
    assert.deepEqual(judge(lost("timeout"), "eth_sendRawTransaction"), {
      category: "timeout",
      step: "stop",
      effect: { kind: "failure", cause: "timeout" },
    });
    assert.deepEqual(judge(lost("timeout"), "eth_call"), {
      category: "timeout",
      step: "next",
      effect: { kind: "failure", cause: "timeout" },
    });
  });

  it("an unknown -32000 costs nobody anything: next for reads, the answer for all else", () => {
    assert.deepEqual(judge(error(-32000, "flux capacitor misaligned"), "eth_getBalance"), {
      category: "unknown",
      step: "next",
      effect: { kind: "ignored" },
    });
    assert.deepEqual(judge(error(-32000, "flux capacitor misaligned"), "eth_sendRawTransaction"), {
      category: "tx_rejected",
      step: "return",
      effect: { kind: "ignored" },
    });
  });
});

describe("the wait after a rate limit", () => {
  const cooldown = (failure: Failure): number => {
    const { effect } = judge(failure, "eth_getBalance");
    assert.equal(effect.kind, "cooldown");
    return effect.kind === "cooldown" ? effect.ms : Number.NaN;
  };

  it(
    "is taken from the header, then from data, then from the text, else 30 s; between 1 s and 10 " +
      "min",
    () => {
      const cases: readonly (readonly [Partial<Failure>, number])[] = [
        [{}, 30_000],
        [{ retryAfter: "7" }, 7_000],
        [{ retryAfter: " 1.5 " }, 1_500],
        [{ retryAfter: "0" }, 1_000],
        [{ retryAfter: "86400" }, 600_000],
        [{ retryAfter: "soon" }, 30_000],
        [{ retryAfter: "-5" }, 30_000],
        [{ retryAfter: "Sun, 15 Jun 2025 12:00:45 GMT" }, 45_000],
        [{ retryAfter: "Sun, 15 Jun 2025 11:00:00 GMT" }, 1_000],
        [{ retryAfter: "Sun, 15 Foo 2025 11:00:00 GMT" }, 30_000],
        [{ data: { rate: { backoff_seconds: 12 } } }, 12_000],
        [{ data: { rate: { backoff_seconds: 12 } }, retryAfter: "3" }, 3_000],
        [{ data: { retryAfter: 9 } }, 9_000],
        [{ data: { rate: { backoff_seconds: "12" } } }, 30_000],
        [{ data: { rate: { backoff_seconds: Number.NaN } } }, 30_000],
        [{ data: JSON.parse('{"__proto__": {"retry_after": 5}}') }, 30_000],
        [
          {
            message: "Too many requests, reason: call rate limit exhausted, retry in 4m40.2s",
            code: -32090,
          },
          280_200,
        ],
        [{ message: "Too Many Requests, IP: 1.2.3.4, please wait 23s and retry" }, 23_000],
        [{ message: "rate limit exceeded, try again in 2 minutes" }, 120_000],
        [{ message: "rate limit exceeded, retry after 1500ms" }, 1_500],
        [{ message: "15/second request limit reached" }, 1_000],
        [{ message: "Heavy method rate limit: 1/min for eth_getLogs" }, 60_000],
        [{ message: "rate limit: 100 requests per minute" }, 60_000],
        [{ message: "rate limit exceeded, retry later (-32005)" }, 30_000],
        [{ data: { message: "please retry in 8 seconds" } }, 8_000],
      ];
      for (const [changes, ms] of cases)
        assert.equal(
          cooldown(error(-32005, "rate limit exceeded", changes)),
          ms,
          JSON.stringify(changes),
        );
    },
  );

  it("reads every HTTP date as the platform does", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4_102_444_800 }), (second) => {
        const failure = error(429, "", { retryAfter: new Date(second * 1_000).toUTCString() });
        const { effect } = judge(failure, "eth_getBalance", { wallMs: second * 1_000 - 77_000 });
        assert.deepEqual(effect, { kind: "cooldown", ms: 77_000 });
      }),
    );
  });
});

describe("the rate limit of one method", () => {
  const scopeOf = (message: string, methodName = "eth_getLogs", code = -32005): unknown => {
    const { effect } = judge(error(code, message), methodName);
    return effect.kind === "cooldown" ? (effect.scope ?? "provider") : effect.kind;
  };

  it("cools that method where the words name it", () => {
    for (const message of [
      "eth_getLogs is limited to 5 requests per second",
      "eth_getLogs rate limit exceeded",
      "rate limit exceeded for eth_getLogs",
      "Too many requests for this method",
      "too many eth_getLogs requests, limit is 5 rps",
      "request limit reached for method eth_getLogs",
    ])
      assert.equal(scopeOf(message), "method", message);
    assert.equal(scopeOf("trace method request limit reached", "trace_block"), "method");
  });

  it("cools the provider where they only say what was called, or name another method", () => {
    for (const message of [
      "eth_getLogs: rate limit exceeded",
      "eth_getLogs failed: too many requests",
      "rate limit exceeded",
      "eth_call rate limit exceeded",
      "100 requests per second exceeded",
    ])
      assert.equal(scopeOf(message), "provider", message);
    // A caller may call a method anything, and a provider repeats it.
    assert.equal(scopeOf("rate limit exceeded", "rate"), "provider");
  });
});

describe("the operator's rules", () => {
  const rule = (changes: Partial<ErrorRule>): ErrorRule => ({
    code: null,
    messageContains: [],
    category: "rate_limit",
    ...changes,
  });

  it("run before the table and need every member they state", () => {
    const reverted = error(30, "Execution reverted on the FREE TIER");
    const by = (...rules: readonly ErrorRule[]): string =>
      judge(reverted, "eth_call", { rules }).category;
    assert.equal(by(), "revert");
    assert.equal(by(rule({ code: 30 })), "rate_limit");
    assert.equal(by(rule({ messageContains: ["paid", "free tier"] })), "rate_limit");
    assert.equal(by(rule({ code: 30, messageContains: ["free tier"] })), "rate_limit");
    assert.equal(by(rule({ code: 31, messageContains: ["free tier"] })), "revert");
    assert.equal(by(rule({ code: 30, messageContains: ["paid"] })), "revert");
    assert.equal(by(rule({ code: 30, category: "auth" }), rule({ code: 30 })), "auth");
  });

  it("learn the limit and the wait as the table does", () => {
    const rules = [rule({ code: 7, category: "block_range" })];
    assert.deepEqual(judge(error(7, "at most 77 please"), "eth_getLogs", { rules }).effect, {
      kind: "learn",
      what: "range",
      maxBlockRange: 77,
    });
    assert.deepEqual(
      judge(error(7, "x", { retryAfter: "4" }), "eth_call", { rules: [rule({ code: 7 })] }).effect,
      { kind: "cooldown", ms: 4_000 },
    );
  });

  it("cannot name what is no category, nor make a sent request unsent", () => {
    for (const category of ["constructor", "__proto__", "toString", ""]) {
      assert.equal(
        judge(error(-32000, "x"), "eth_call", { rules: [rule({ code: -32000, category })] })
          .category,
        "unknown",
      );
    }
    const network: Failure = {
      kind: "network",
      httpStatus: 0,
      retryAfter: null,
      code: null,
      message: "reset",
      data: null,
    };
    assert.equal(
      judge(network, "eth_call", {
        rules: [rule({ messageContains: ["reset"], category: "unsent" })],
      }).category,
      "network",
    );
  });
});

describe("hostile input", () => {
  const anyFailure: fc.Arbitrary<Failure> = fc.record({
    kind: fc.constantFrom<Failure["kind"]>("error", "body", "timeout", "unsent", "network"),
    httpStatus: fc.oneof(
      fc.integer({ min: 0, max: 999 }),
      fc.constantFrom(0, 200, 401, 403, 429, 500),
    ),
    retryAfter: fc.option(fc.string()),
    code: fc.option(
      fc.oneof(
        fc.double(),
        fc.integer(),
        fc.constantFrom(3, -32000, -32005, -32601, -32602, -32603),
      ),
    ),
    message: fc.oneof(fc.string(), fc.constantFrom(...ROWS.map((row) => row.message))),
    data: fc.oneof(fc.anything(), fc.jsonValue()),
  });

  it("always gets one of the table's categories, the same each time", () => {
    const categories = new Set(ERROR_CATEGORIES);
    const methods = [
      "eth_call",
      "eth_getLogs",
      "eth_sendRawTransaction",
      "trace_block",
      "constructor",
      "__proto__",
    ];
    fc.assert(
      fc.property(anyFailure, fc.constantFrom(...methods), (failure, method) => {
        const verdict = judge(failure, method);
        assert.ok(categories.has(verdict.category), verdict.category);
        assert.deepEqual(judge(failure, method), verdict);
      }),
      { numRuns: 2_000 },
    );
  });

  it("that breaks the declared types is judged all the same", () => {
    for (const strange of [null, undefined, 5, {}, [], { toString: null }]) {
      const failure: Failure = Object.assign(error(null, ""), {
        message: strange,
        code: "-32005",
        data: strange,
        retryAfter: strange,
      });
      assert.equal(judge(failure, "eth_getLogs").category, "unknown");
    }
    assert.equal(judge(error(Number.NaN, "x"), "eth_call").category, "unknown");
    assert.equal(judge(error(-32005.5, "x"), "eth_call").category, "unknown");
  });

  it("is looked at only at its beginning, so a megabyte costs no more than a page", () => {
    const seeds = [
      "a",
      "0",
      "method ",
      "range max ",
      "retry 1",
      "limit 1,",
      "\u0130",
      '"_- ',
      "block ",
      "state at ",
      "1 > ",
      "archive ",
      "pending block state ",
      "1 2 ",
    ];
    for (const seed of seeds) {
      const failure = error(-32602, seed.repeat(Math.ceil(1_000_000 / seed.length)), {
        data: { message: seed.repeat(100_000), deep: nested(5_000) },
      });
      for (const method of ["eth_getLogs", "eth_call", "eth_sendRawTransaction"])
        judge(failure, method);
    }
    assert.equal(
      judge(error(-32000, `${"x".repeat(5_000)} execution reverted`), "eth_call").category,
      "unknown",
    );
  });
});

function nested(depth: number): unknown {
  let value: unknown = "execution reverted";
  for (let i = 0; i < depth; i++) value = { value };
  return value;
}
