// The method table as the configuration extends it: other names, and other costs, deadlines and
// block parameters of known ones. Added methods keep their place in per-method arrays for as long
// as the process lives, so that what was counted of one is never told of another.
import {
  type DeadlineClass,
  MAX_ADDED_METHODS,
  METHODS,
  type Method,
  methodOf,
  UNKNOWN_METHOD,
} from "./method.ts";

/** What a configuration says of one method. */
export interface ConfiguredMethod {
  readonly name: string;
  /** Null = as in the built-in table. */
  readonly kind: "read" | "write" | null;
  /** Index in `params` of the block that it reads; null = as in the built-in table, else none. */
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
  /** Live rows. */
  readonly rows: readonly Method[];
  /**
   * The name of every place in a per-method array, also of methods that are configured no longer.
   */
  readonly labels: readonly string[];
}

/** The built-in table with what the configuration says. `previous`: the table before a reload. */
export function methodTable(
  configured: readonly ConfiguredMethod[],
  previous: MethodTable | null = null,
): MethodTable {
  const labels = [...(previous?.labels ?? METHODS.map((method) => method.name))];
  const own = new Map(configured.map((method) => [method.name, rowOf(method, labels)]));
  const rows = [
    ...METHODS.map((method) => own.get(method.name) ?? method),
    ...[...own.values()].filter(({ family }) => family === "configured"),
  ];
  return {
    of: own.size === 0 ? methodOf : (name) => own.get(name) ?? methodOf(name),
    rows,
    labels,
  };
}

function rowOf({ name, kind, blockAt, cu, deadline }: ConfiguredMethod, labels: string[]): Method {
  const base = methodOf(name);
  const known =
    base === UNKNOWN_METHOD
      ? { ...base, name, index: placeOf(name, labels), family: "configured" as const }
      : base;
  return {
    ...known,
    replaySafe: kind === null ? known.replaySafe : kind === "read",
    block: blockAt === null ? known.block : { kind: "block", at: blockAt },
    cu: cu ?? known.cu,
    deadline: deadline ?? known.deadline,
  };
}

/**
 * A place of its own; when all were taken by earlier configurations, that of methods without a row.
 */
function placeOf(name: string, labels: string[]): number {
  const known = labels.indexOf(name, METHODS.length);
  if (known !== -1) return known;
  if (labels.length >= METHODS.length + MAX_ADDED_METHODS) return UNKNOWN_METHOD.index;
  labels.push(name);
  return labels.length - 1;
}
