// Measures the cost of giving every request to a provider an id of the service: the functions
// involved, compared with the same work without ids. CPU time in this process. Run with `node
// bin/svc.mjs --run bench/wire-id.ts`.
import { readAnswer } from "../src/core/rpc/answer.ts";
import { createWireIds } from "../src/runtime.ts";
import { RequestWriter } from "../src/upstream/http/http1-connection.ts";
import { renderResult } from "../src/web/rpc/answers/render-reply.ts";

const RUNS = 1_000_000;
const ROUNDS = 7;
const ANSWERS = 64;

const REQUEST = Buffer.from(
  '{"jsonrpc":"2.0","id":7,"method":"eth_getBalance","params":["0x00000000219ab540356cbb839cbe05303d7705fa","latest"]}',
);
const REQUEST_HEAD = Buffer.from(
  "POST /v2/key HTTP/1.1\r\nhost: node.test\r\ncontent-type: application/json\r\naccept: " +
    "application/json\r\nuser-agent: svc\r\ncontent-length: ",
);
const ANSWER_HEAD =
  "HTTP/1.1 200 OK\r\nx-svc-request-id: req-1\r\nContent-Type: " +
  "application/json\r\nContent-Length: 61\r\n\r\n";
const RESULT = '"0x1bc16d674ec80000"';

const nextId = createWireIds(Math.random);
const ids = Array.from({ length: ANSWERS }, nextId);
const answers = ids.map((id) => Buffer.from(`{"jsonrpc":"2.0","id":${id},"result":${RESULT}}`));
const untouched = Buffer.from(`{"jsonrpc":"2.0","id":7,"result":${RESULT}}`);
const wire = Buffer.alloc(4_096);
const writer = new RequestWriter();
let turn = 0;
let used = 0;

/** Like a socket write: the text must be flattened into one piece. */
function send(text: string): void {
  used += wire.write(text, "latin1");
}

function sendRequest(id: string): void {
  writer.add(REQUEST_HEAD, { bytes: REQUEST, id, idStart: 22, idEnd: 23 });
  used += writer.take().length;
}

function sendPieces(pieces: readonly Buffer[]): void {
  let text = ANSWER_HEAD;
  for (const piece of pieces) text += piece.toString("latin1");
  send(text);
}

/** Nanoseconds per run, the minimum of several rounds. */
function costOf(run: () => void): number {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage();
    for (let n = 0; n < RUNS; n++) run();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, ((user + system) * 1_000) / RUNS);
  }
  return least;
}

const STEPS: readonly (readonly [name: string, without: () => void, withId: () => void])[] = [
  ["writing a request", () => sendRequest("7"), () => sendRequest(nextId())],
  [
    "reading an answer",
    () => {
      used += readAnswer(untouched, "7").kind.length;
    },
    () => {
      turn = (turn + 1) % ANSWERS;
      used += readAnswer(answers[turn] ?? untouched, ids[turn] ?? "").kind.length;
    },
  ],
  [
    "writing the answer",
    () => sendPieces([untouched]),
    () => {
      turn = (turn + 1) % ANSWERS;
      sendPieces(
        renderResult(
          answers[turn] ?? untouched,
          { start: 48, end: 48 + RESULT.length, idAt: 22 },
          "7",
        ),
      );
    },
  ],
];

let sum = 0;
for (const [name, without, withId] of STEPS) {
  const [before, after] = [costOf(without), costOf(withId)];
  sum += after - before;
  process.stdout.write(
    `${name.padEnd(20)} ${before.toFixed(0).padStart(5)} ns → ${after.toFixed(0).padStart(5)} ns\n`,
  );
}
process.stdout.write(
  `${"in sum".padEnd(20)} ${sum.toFixed(0).padStart(5)} ns a call (${used > 0 ? RUNS : 0} runs ` +
    `a round)\n`,
);
