// A bare relay over TLS, a process of its own: each connection of a caller gets one to a provider,
// and bytes pass as they come. It reads no HTTP and checks no answer: what it costs is the least
// that a service on `node:tls` can cost. Arguments: its port, then the ports of providers.
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { connect } from "node:tls";
import { CERTIFICATE } from "./upstream.ts";

const [port = 0, ...providers] = process.argv.slice(2).map(Number);
const ca = readFileSync(CERTIFICATE);
const memory = Buffer.allocUnsafeSlow(65_536);
let next = 0;

const server = createServer({ noDelay: true }, (caller) => {
  const options = {
    host: "127.0.0.1",
    port: providers[next++ % providers.length] ?? 0,
    ca,
    noDelay: true,
    onread: {
      buffer: memory,
      callback(bytes: number, buffer: Uint8Array) {
        // The caller's socket may keep what it is given.
        caller.write(Buffer.from(buffer.subarray(0, bytes)));
        return true;
      },
    },
  };
  const provider = connect(options);
  caller.on("data", (bytes) => provider.write(bytes));
  for (const socket of [caller, provider])
    socket.on("error", () => {}).on("close", () => [caller, provider].map((it) => it.destroy()));
});
server.listen(port, "127.0.0.1", 1_024);
