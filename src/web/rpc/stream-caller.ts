// Identifies callers for limits on streams: by the account of the key, or by the network of a
// caller without a key.
import type { CallerIdentity } from "../../core/provider/silence.ts";
import type { StreamCaller } from "../../upstream/stream/subscriber.ts";
import type { RpcLimits } from "./limits.ts";

/** The identity under which streams are limited, over all connections of the caller. */
export function streamCaller(
  { key }: CallerIdentity,
  keyed: boolean,
  { maxLogFilters, maxKeylessLogFilters }: RpcLimits,
): StreamCaller {
  return { id: key, maxLogFilters: keyed ? maxLogFilters : maxKeylessLogFilters };
}
