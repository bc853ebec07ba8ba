// The method table with the configuration's additions: further names, and other costs, deadlines
// and block parameters for known ones. An added method keeps its index in per-method arrays for as
// long as the process lives, so that counts of one method never become another's.
import {
  type DeadlineClass,
  MAX_ADDED_METHODS,
  METHODS,
  type Method,
  mayBeConfigured,
  methodOf,
  UNKNOWN_METHOD,
} from "./method.ts";

/** The configuration of one method. */
export interface ConfiguredMethod {
  readonly name: string;
  /** Null = as in the built-in table. */
  readonly kind: "read" | "write" | null;
  /** Index in `params` of its block parameter; null = as in the built-in table, else none. */
  readonly blockAt: number | null;
  /** Null = as in the built-in table, else 3. */
  readonly cu: number | null;
  /** Null = as in the built-in table, else `default`. */
  readonly deadline: DeadlineClass | null;
}

/** Every method that has a row. */
export interface MethodTable {
  /** The row of a name; names without one share the default row. */
  readonly of: (name: string) => Method;
  /** The current rows. */
  readonly rows: readonly Method[];
  /**
   * The method name of each index in per-method arrays, including methods that are no longer
   * configured.
   */
  readonly labels: readonly string[];
}

/** The built-in table with the configured methods. `previous`: the table before a reload. */
export function methodTable(
  configured: readonly ConfiguredMethod[],
  previous: MethodTable | null = null,
): MethodTable {
  const labels = [...(previous?.labels ?? METHODS.map((method) => method.name))];
  const own = new Map(configured.map((method) => [method.name, rowOf(method, labels)]));
  const rows = [
    ...METHODS.map((method) => own.get(method.name) ?? method),
    ...[...own.values()].filter(({ origin }) => origin === "configured"),
  ];
  return {
    of: own.size === 0 ? methodOf : (name) => own.get(name) ?? methodOf(name),
    rows,
    labels,
  };
}

function rowOf({ name, kind, blockAt, cu, deadline }: ConfiguredMethod, labels: string[]): Method {
  const known = mayBeConfigured(name)
    ? { ...UNKNOWN_METHOD, name, index: placeOf(name, labels), origin: "configured" as const }
    : methodOf(name);
  return {
    ...known,
    replaySafe: kind === null ? known.replaySafe : kind === "read",
    block: blockAt === null ? known.block : { kind: "block", at: blockAt },
    batch: known.batch && kind !== "write" && (deadline === null || QUICK.has(deadline)),
    // What its answers depend on is known of the built-in row only.
    cache: kind === null && blockAt === null ? known.cache : null,
    ...(blockAt === null ? {} : UNLIKE_BUILT_IN),
    cu: cu ?? known.cu,
    deadline: deadline ?? known.deadline,
  };
}

/** What is known of the block parameter of the built-in row does not hold for another place. */
const UNLIKE_BUILT_IN = { fillsBlock: false, takesHash: false, byHashName: null } as const;

/** Deadlines of methods that may share a request with others. */
const QUICK: ReadonlySet<DeadlineClass> = new Set(["cheap", "standard", "default"]);

/** The index of a configured method; when none is free, the index of methods without a row. */
function placeOf(name: string, labels: string[]): number {
  const known = labels.indexOf(name, METHODS.length);
  if (known !== -1) return known;
  if (labels.length >= METHODS.length + MAX_ADDED_METHODS) return UNKNOWN_METHOD.index;
  labels.push(name);
  return labels.length - 1;
}
