// Who a caller is where callers are bounded one by one: the account behind a key, or the network that a caller without one comes from.
import { isIPv6 } from "node:net";
import type { Holder } from "../hosted/holder.ts";
import type { StreamCaller } from "../upstream/stream/subscriber.ts";
import type { RpcLimits } from "./rpc/limits.ts";

/** The caller of streams; `address` is its IP address, which counts where it has no key. */
export function streamCaller(holder: Holder | null, address: string, { maxLogFilters, maxKeylessLogFilters }: RpcLimits): StreamCaller {
  if (holder !== null) return { id: `account ${holder.payer.id}`, maxLogFilters };
  return { id: `address ${networkOf(address)}`, maxLogFilters: maxKeylessLogFilters };
}

const GROUPS = 8;
const NETWORK_GROUPS = 4;

/** One customer of a network operator: an IPv4 address, or the /64 of an IPv6 address. */
export function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [before = "", after = ""] = (address.split("%")[0] ?? "").split("::");
  const left = before === "" ? [] : before.split(":");
  const right = after === "" ? [] : after.split(":");
  const zeros = Array.from({ length: Math.max(0, GROUPS - left.length - right.length) }, () => "0");
  const groups = [...left, ...(address.includes("::") ? zeros : []), ...right];
  return groups
    .slice(0, NETWORK_GROUPS)
    .map((it) => Number.parseInt(it, 16).toString(16))
    .join(":");
}
