// The types of undici's parts where they are imported from their own files: the index of the
// package loads sixty files more (fetch, WebSocket, caches), which take 6 MB.
declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export = Pool;
}

declare module "undici/lib/core/connect.js" {
  import { buildConnector } from "undici";
  export = buildConnector;
}
