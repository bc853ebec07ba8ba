// The official exchanges of the Ethereum execution APIs, and a provider that answers as they say.
// The file says where they are from.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { Asked, Script } from "../fakes/upstream.ts";

/** One request and the answer of a node to it. */
export interface Exchange {
  readonly file: string;
  readonly method: string;
  /** As they stand in the file. */
  readonly request: string;
  readonly answer: string;
}

/** The chain of the exchanges. */
export const CHAIN_ID = 3_503_995_874_084_926;

/** Every exchange, in the order of the file. */
export function readExchanges(): readonly Exchange[] {
  const packed = readFileSync(new URL("../data/execution-apis.txt.gz", import.meta.url));
  const exchanges: Exchange[] = [];
  let file = "";
  let request = "";
  for (const line of gunzipSync(packed).toString().split("\n")) {
    const rest = line.slice(3);
    if (line.startsWith("# ")) file = line.slice(2);
    else if (line.startsWith(">> ")) request = rest;
    else if (line.startsWith("<< "))
      exchanges.push({ file, method: JSON.parse(request).method, request, answer: rest });
  }
  return exchanges;
}

/** Whether the service refuses the method: it is for nodes under test alone. */
export function isRefused({ method }: Exchange): boolean {
  return method.startsWith("testing_");
}

/** Whether the service answers for its providers together, and so not as one of them. */
export function isOfAll({ method }: Exchange): boolean {
  return method === "eth_capabilities";
}

/** Those that come back as one provider gave them. */
export function servedOf(exchanges: readonly Exchange[]): readonly Exchange[] {
  return exchanges.filter((exchange) => !isRefused(exchange) && !isOfAll(exchange));
}

/** A text of an exchange under another id. */
export function underId(text: string, id: number | string): string {
  return text.replace(/"id":\d+/, `"id":${id}`);
}

/** Answers as the exchanges say, and what the service asks by itself as a node of their chain. */
export function answering(exchanges: readonly Exchange[]): Script {
  const answers = new Map(
    exchanges.map(({ request, answer }) => [keyOf(JSON.parse(request)), answer]),
  );
  const newest = answers.get(keyOf({ method: "eth_getBlockByNumber", params: ["latest", true] }));
  return (asked, reply) => {
    const answer =
      answers.get(keyOf(asked)) ?? (isAboutBlock(asked) && newest !== undefined ? newest : null);
    if (answer !== null) reply.body(underId(answer, asked.id));
    else reply.error('{"code":-32601,"message":"the method does not exist"}');
  };
}

/** What the prober asks beside the exchanges: the blocks that tags name, without transactions. */
function isAboutBlock({ method, params }: Pick<Asked, "method" | "params">): boolean {
  return method === "eth_getBlockByNumber" && /^\["[a-z]+",false\]$/.test(JSON.stringify(params));
}

function keyOf({ method, params }: { readonly method: string; readonly params?: unknown }): string {
  return `${method} ${JSON.stringify(params ?? [])}`;
}
