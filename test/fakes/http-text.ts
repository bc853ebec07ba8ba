// Requests as text, for clients that write them by hand.

/** The text of one call. */
export function callText(id: number | string, method = "eth_call", params = "[]"): string {
  return `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`;
}

/** A POST of a body, with further header lines. */
export function postText(body: string, lines: readonly string[] = [], target = "/rpc/1"): string {
  const head = [
    `POST ${target} HTTP/1.1`,
    "Host: x",
    "Content-Type: application/json",
    ...lines,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return `${head.join("\r\n")}\r\n\r\n${body}`;
}

/** The handshake of a WebSocket. */
export function handshakeText(target: string): string {
  return [
    `GET ${target} HTTP/1.1`,
    "Host: x",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "\r\n",
  ].join("\r\n");
}
