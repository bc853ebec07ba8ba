// Who a caller is where callers are bounded one by one: the account behind a key, or the network
// that a caller without one comes from.
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { StreamCaller } from "../../upstream/stream/subscriber.ts";
import type { RpcLimits } from "./limits.ts";

/** The caller of streams, one over all its connections, over sockets and HTTP. */
export function streamCaller(
  { key }: CallerIdentity,
  keyed: boolean,
  { maxLogFilters, maxKeylessLogFilters }: RpcLimits,
): StreamCaller {
  return { id: key, maxLogFilters: keyed ? maxLogFilters : maxKeylessLogFilters };
}
