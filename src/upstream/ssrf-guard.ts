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

type Found = Parameters<Resolve>[1];

/** Decides where connections to users' providers may lead; by default to public addresses only. */
export class SsrfGuard {
  /** What requests carry that it lets pass; see `serviceMark`. */
  readonly mark: string;
  /**
   * The `lookup` option of node's `connect`: returns checked addresses only. Node does not call it
   * for literal addresses, which `refusal` judges.
   */
  readonly lookup: LookupFunction;
  readonly #rules: AddressRules;
  readonly #resolve: Resolve;
  readonly #isAllowed: (address: string) => boolean;
  readonly #waiting = new Map<string, Found[]>();

  constructor({
    rules = PUBLIC_ONLY,
    resolve = nameServers(),
    isAllowed = isElsewhere,
    mark = "",
  }: SsrfGuardOptions = {}) {
    this.mark = mark;
    this.#rules = rules;
    this.#resolve = resolve;
    this.#isAllowed = isAllowed;
    this.lookup = rules.allowPrivate ? systemLookup : (...asked) => this.#lookUp(...asked);
  }

  /** Why this URL is refused, judged by its text; null = the addresses of its host decide. */
  refusal(url: string): Error | null {
    const { allowPrivate } = this.#rules;
    const read = readUserUrl(url, this.#rules);
    const good =
      read.kind === "url" && (allowPrivate || !isAddress(read.host) || this.#isAllowed(read.host));
    return good ? null : refused("the address of the provider is not allowed", NOT_PUBLIC);
  }

  #lookUp(...[host, { all, family }, callback]: Parameters<LookupFunction>): void {
    this.#find(host, (addresses, code) => {
      const fail = (message: string, why: string): void => callback(refused(message, why), []);
      if (code !== null || addresses.length === 0)
        return fail("the name of the provider has no address", code ?? "ENOTFOUND");
      // One private address is enough to refuse: its owner must not be able to choose among
      // several.
      if (!addresses.every((address) => this.#isAllowed(address)))
        return fail("the name of the provider leads to an address that is not public", NOT_PUBLIC);
      const found = addresses.map((address) => ({ address, family: isIP(address) }));
      const wanted =
        family === 4 || family === 6 ? found.filter((address) => address.family === family) : found;
      const [first] = wanted;
      if (first === undefined)
        return fail("the name of the provider has no address of this kind", "ENOTFOUND");
      if (all === true) callback(null, wanted.slice(0, MAX_TRIED));
      else callback(null, first.address, first.family);
    });
  }

  /** Concurrent lookups of one name share the result. */
  #find(host: string, done: Found): void {
    const others = this.#waiting.get(host);
    if (others !== undefined) return void others.push(done);
    if (this.#waiting.size >= MAX_LOOKUPS) return queueMicrotask(() => done([], "EBUSY"));
    const all = [done];
    this.#waiting.set(host, all);
    this.#resolve(host, (addresses, code) => {
      this.#waiting.delete(host);
      for (const hear of all) hear(addresses, code);
    });
  }
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
