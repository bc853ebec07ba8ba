// Listens on `server.metrics_listen` and serves only `/metrics`, with real provider ids.
import { METRICS_TYPE } from "../../observe/metric-families.ts";
import { createServer } from "../http/node-http.ts";
import { portOf } from "./server.ts";

/** The address to listen on, and the page to serve. */
export interface MetricsListening {
  readonly host: string;
  readonly port: number;
  /** Reads the page as of now; null = it cannot be had. */
  readonly text: (use: (text: string | null) => void) => void;
}

/** A listener for metric scrapers. */
export interface MetricsListener {
  readonly port: number;
  close(): void;
}

const MAX_CONNECTIONS = 64;
const REQUEST_TIMEOUT_MS = 10_000;

/** Starts listening; rejects if the address is not available. */
export function listenForMetrics({ host, port, text }: MetricsListening): Promise<MetricsListener> {
  const server = createServer(
    { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: REQUEST_TIMEOUT_MS },
    (request, response) => {
      request.resume();
      const path = (request.url ?? "").split("?", 1)[0];
      if (path !== "/metrics")
        return void response.writeHead(404).end("only /metrics is served here\n");
      if (request.method !== "GET" && request.method !== "HEAD")
        return void response.writeHead(405, { Allow: "GET, HEAD" }).end();
      text((page) => {
        if (page === null) response.writeHead(503, { "Retry-After": "1" }).end();
        else response.writeHead(200, { "Content-Type": METRICS_TYPE }).end(page);
      });
    },
  );
  server.maxConnections = MAX_CONNECTIONS;
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      const close = (): void => {
        server.close();
        server.closeAllConnections();
      };
      resolve({ port: portOf(server, port), close });
    });
  });
}
