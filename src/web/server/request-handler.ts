// Dispatches each request of node's HTTP server: RPC calls, the HTTP API, pages, or a refusal.
import type { IncomingMessage, ServerResponse } from "node:http";
import { callEndOf } from "../../core/call-end.ts";
import { type Fault, fault } from "../../core/faults/rpc-fault.ts";
import type { ConsoleSessions } from "../api/console-sessions.ts";
import type { Api } from "../api/operation-server.ts";
import type { Activity } from "../http/activity.ts";
import { headerOf } from "../http/client-address.ts";
import { html } from "../http/html.ts";
import { bearerOf, isFromThisMachine, NO_HOST, namesOneHost } from "../http/local-caller.ts";
import type { RequestOrigin } from "../http/request-origin.ts";
import { type Headers, headersOf, wantsHtml, writeFault, writePreflight } from "../http/respond.ts";
import { writePage } from "../pages/account/page.ts";
import type { PageHandler } from "../pages/console-pages.ts";
import { withoutPayment } from "../payment/payment-headers.ts";
import { HttpRequest } from "../rpc/connections/node-http.ts";
import type { RpcParts } from "../rpc/parts.ts";
import { isRpcPath, isSocketPath } from "../rpc/target.ts";
import { NOT_A_SOCKET } from "../socket/client-sockets.ts";

export interface RequestParts {
  readonly activity: Activity;
  readonly rpc: RpcParts;
  /** The page at a path; undefined = none. */
  readonly page: (path: string) => PageHandler | undefined;
  /** Serves every method on its paths, and reads request bodies itself. */
  readonly api: Api;
  readonly sessions: Pick<ConsoleSessions, "callerOf" | "operatorBy">;
  /** Whether status pages are open to everyone. */
  readonly isStatusPublic: () => boolean;
  readonly requestId: () => string;
  readonly originOf: (request: IncomingMessage) => RequestOrigin;
}

/** Serves or refuses one request. */
export function handleRequest(
  parts: RequestParts,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { method, headers: sent } = request;
  const url = originForm(request.url ?? "/");
  const requestId = parts.requestId();
  const namesHost = namesOneHost(request);
  if (namesHost && method === "POST" && isRpcPath(url)) {
    request.url = url;
    return new HttpRequest(parts, request, response, requestId).read();
  }
  const path = url.split("?", 1)[0] ?? "/";
  if (namesHost && method !== "OPTIONS" && parts.api.serves(path)) {
    request.url = url;
    return parts.api.handle({ ...parts.originOf(request), request, response, requestId });
  }
  const headers = headersOf(requestId, sent["x-request-id"]);
  request.on("error", () => {});
  request.resume();
  if (!namesHost) return writeFault(response, headers, NO_HOST);
  if (method === "OPTIONS") return writePreflight(response, headers);
  if (isSocketPath(url) || isRpcPath(url)) {
    const why = isSocketPath(url)
      ? writeNotASocket(request, response, headers)
      : writeNotAllowed(response, headers, "POST, OPTIONS", notACall(method));
    const end = callEndOf({ kind: "fault", fault: why });
    return parts.rpc.observer.unread(end, null, requestId);
  }
  const page = parts.page(path);
  if (page === undefined) return writeNotFound(request, response, headers);
  if (method !== "GET" && method !== "HEAD")
    return void writeNotAllowed(response, headers, "GET, HEAD, OPTIONS", notServed(method));
  showPage(parts, page, { request, response, headers, path, query: url.slice(path.length + 1) });
}

/** A request for a page. */
interface PageExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly headers: Headers;
  readonly path: string;
  readonly query: string;
}

const SESSION_PAGES = "/api/";

/** Has a page answer. Only the status pages look at the cookie of the console. */
function showPage(
  parts: RequestParts,
  page: PageHandler,
  { request, response, headers, path, query }: PageExchange,
): void {
  const { headers: sent } = request;
  const { baseUrl, address, cookie } = parts.originOf(request);
  const bearer = bearerOf(withoutPayment(sent.authorization));
  const byToken = parts.sessions.operatorBy(bearer, address) === true;
  const show = (role: "operator" | "agent" | null): void =>
    page(response, headers, {
      path,
      query,
      baseUrl,
      known: sent["if-none-match"],
      client: {
        address: request.socket.remoteAddress ?? "",
        header: (name) => headerOf(request, name),
      },
      isOperator: byToken || role === "operator",
      mayReadStatus: byToken || role !== null || parts.isStatusPublic(),
      isLocal: isFromThisMachine(request),
    });
  const { id } = cookie;
  if (id === null || byToken || !path.startsWith(SESSION_PAGES)) return show(null);
  parts.sessions.callerOf(id).then(
    (caller) => show(caller?.kind ?? null),
    () => show(null),
  );
}

function notACall(method: string | undefined): Fault {
  return fault("method_not_allowed", `${method} is not served on an RPC path`);
}

function notServed(method: string | undefined): Fault {
  return fault("method_not_allowed", `${method} is not served here`, { nextAction: "send a GET" });
}

function writeNotFound(
  { method, headers: { accept } }: IncomingMessage,
  response: ServerResponse,
  headers: Headers,
): void {
  if (method !== "GET" || !wantsHtml(accept))
    return writeFault(response, headers, fault("not_found", "nothing is served at this path"));
  const lines = [
    html`<p class="lead">Nothing is served at this address.</p>`,
    html`<p><a href="/docs">Documents</a> · <a href="/dashboard">Console</a></p>`,
  ];
  writePage(response, headers, {
    status: 404,
    title: "Not found",
    body: html`<h1>Not found</h1>${lines}`,
  });
}

function writeNotASocket(
  { method }: IncomingMessage,
  response: ServerResponse,
  headers: Headers,
): Fault {
  const nextAction = "open a WebSocket here, or POST to the same path without /ws";
  if (method !== "GET" && method !== "HEAD")
    return writeNotAllowed(
      response,
      headers,
      "GET, OPTIONS",
      fault("method_not_allowed", `${method} is not served on a path for WebSockets`, {
        nextAction,
      }),
    );
  headers.push("Upgrade", "websocket");
  writeFault(response, headers, NOT_A_SOCKET);
  return NOT_A_SOCKET;
}

function writeNotAllowed(
  response: ServerResponse,
  headers: Headers,
  allow: string,
  why: Fault,
): Fault {
  headers.push("Allow", allow);
  writeFault(response, headers, why);
  return why;
}

/** Path and query of a request target, which may be in absolute form. */
export function originForm(target: string): string {
  if (target.startsWith("/")) return target;
  const rest = target.replace(/^https?:\/\/[^/?#]*/i, "");
  return rest.startsWith("/") ? rest : `/${rest}`;
}
