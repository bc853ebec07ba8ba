// Guards connections to users' providers against SSRF: resolves the name when a connection is made,
// requires every address found to be public, and connects to one of exactly those. Knows no
// providers and caches nothing: the next connection resolves again.
import { Resolver, lookup as systemLookup } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import {
  type AddressRules,
  isAddress,
  isPublicAddress,
  PUBLIC_ONLY,
  reachedBy,
  readUserUrl,
} from "../core/public-address.ts";

/** Resolves a name to all of its addresses; `code` says why there are none. */
export type Resolve = (
  host: string,
  done: (addresses: readonly string[], code: string | null) => void,
) => void;

/** Decides where connections to users' providers may lead. */
export interface SsrfGuard {
  /** Why this URL is refused, judged by its text; null = the addresses of its host decide. */
  refusal(url: string): Error | null;
  /**
   * The `lookup` option of node's `connect`: returns checked addresses only. Node does not call it
   * for literal addresses, which `refusal` judges.
   */
  readonly lookup: LookupFunction;
  /** What requests carry that it lets pass; see `serviceMark`. */
  readonly mark: string;
}

/** Settings of a guard. */
export interface SsrfGuardOptions {
  readonly rules?: AddressRules;
  readonly resolve?: Resolve;
  /** Whether connections to an address are allowed. */
  readonly isAllowed?: (address: string) => boolean;
  readonly mark?: string;
}

/** The error code of a connection that was refused because its address is not public. */
export const NOT_PUBLIC = "ENOTPUBLIC";

const MAX_LOOKUPS = 1_000;
/** Addresses of one name that are tried; all others are only checked. */
const MAX_TRIED = 16;
const LOOKUP_TIMEOUT_MS = 2_000;
const LOOKUP_TRIES = 2;

/** Creates a guard; by default it allows public addresses only. */
export function createSsrfGuard({
  rules = PUBLIC_ONLY,
  resolve = nameServers(),
  isAllowed = isElsewhere,
  mark = "",
}: SsrfGuardOptions = {}): SsrfGuard {
  const waiting = new Map<
    string,
    ((addresses: readonly string[], code: string | null) => void)[]
  >();

  /** Concurrent lookups of one name share the result. */
  function find(
    host: string,
    done: (addresses: readonly string[], code: string | null) => void,
  ): void {
    const others = waiting.get(host);
    if (others !== undefined) return void others.push(done);
    if (waiting.size >= MAX_LOOKUPS) return queueMicrotask(() => done([], "EBUSY"));
    const all = [done];
    waiting.set(host, all);
    resolve(host, (addresses, code) => {
      waiting.delete(host);
      for (const hear of all) hear(addresses, code);
    });
  }

  const checked: LookupFunction = (host, { all, family }, callback) => {
    find(host, (addresses, code) => {
      if (code !== null || addresses.length === 0)
        return callback(
          refused("the name of the provider has no address", code ?? "ENOTFOUND"),
          [],
        );
      // One private address is enough to refuse: its owner must not be able to choose among
      // several.
      if (!addresses.every(isAllowed))
        return callback(
          refused("the name of the provider leads to an address that is not public", NOT_PUBLIC),
          [],
        );
      const found = addresses.map((address) => ({ address, family: isIP(address) }));
      const wanted =
        family === 4 || family === 6 ? found.filter((address) => address.family === family) : found;
      const [first] = wanted;
      if (first === undefined)
        return callback(
          refused("the name of the provider has no address of this kind", "ENOTFOUND"),
          [],
        );
      if (all === true) callback(null, wanted.slice(0, MAX_TRIED));
      else callback(null, first.address, first.family);
    });
  };

  return {
    mark,
    refusal(url) {
      const read = readUserUrl(url, rules);
      const good =
        read.kind === "url" &&
        (rules.allowPrivate || !isAddress(read.host) || isAllowed(read.host));
      return good ? null : refused("the address of the provider is not allowed", NOT_PUBLIC);
    },
    lookup: rules.allowPrivate ? systemLookup : checked,
  };
}

/**
 * Whether an address is public and not one of this machine, whose services may be meant for others
 * than users.
 */
function isElsewhere(address: string): boolean {
  if (!isPublicAddress(address)) return false;
  const reached = reachedBy(address);
  return !Object.values(networkInterfaces()).some((all) =>
    all?.some((local) => local.address === address || local.address === reached),
  );
}

/**
 * Resolves with name servers (null = those of the system) and nothing else: no hosts file, no
 * search domains, no thread that a slow server could block.
 */
export function nameServers(servers: readonly string[] | null = null): Resolve {
  const resolver = new Resolver({ timeout: LOOKUP_TIMEOUT_MS, tries: LOOKUP_TRIES });
  if (servers !== null) resolver.setServers(servers);
  return (host, done) => {
    const found: (readonly string[])[] = [];
    let code: string | null = null;
    const hear = (
      error: NodeJS.ErrnoException | null,
      addresses: readonly string[] | undefined,
    ): void => {
      found.push(addresses ?? []);
      code ??= error?.code ?? null;
      if (found.length < 2) return;
      const all = found.flat();
      done(all, all.length === 0 ? (code ?? "ENOTFOUND") : null);
    };
    resolver.resolve4(host, hear);
    resolver.resolve6(host, hear);
  };
}

function refused(message: string, code: string): Error {
  return Object.assign(new Error(message), { code });
}
