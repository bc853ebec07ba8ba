// Node's HTTP server. Importing `node:http` by its name reads all that it exports, and one of these
// loads a client that the service does not use: 12 ms of a start.

export const { createServer, STATUS_CODES } = process.getBuiltinModule("node:http");
