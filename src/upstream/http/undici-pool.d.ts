// The type of undici's pool where it is imported from its own file: the index of the package loads
// sixty files more (fetch, WebSocket, caches), which take 6 MB.
declare module "undici/lib/dispatcher/pool.js" {
  import { Pool } from "undici";
  export = Pool;
}
