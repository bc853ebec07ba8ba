// A provider as a process of its own that can be stopped with SIGSTOP: answers every call after
// some milliseconds, probes included. Prints its port.
import { randomInt } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const LEAST_MS = 5;
const SPREAD_MS = 15;
const RESULTS: Readonly<Record<string, string>> = {
  eth_chainId: '"0x1"',
  eth_blockNumber: '"0x64"',
};

const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk: Buffer) => {
    body += chunk.toString();
  });
  request.on("end", () => {
    const { id, method }: { id: number; method: string } = JSON.parse(body);
    const answer = `{"jsonrpc":"2.0","id":${id},"result":${RESULTS[method] ?? '"0x1"'}}`;
    const late = setTimeout(
      () => response.writeHead(200, { "content-type": "application/json" }).end(answer),
      LEAST_MS + randomInt(SPREAD_MS),
    );
    response.on("close", () => clearTimeout(late));
  });
});
server.listen(0, "127.0.0.1", () =>
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`),
);
