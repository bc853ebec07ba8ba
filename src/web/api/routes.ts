// Finds the operation of a path and method. Fixed segments win over parameters. Knows nothing of
// what operations do.
import type { Operation, OperationMethod } from "../contract/operation.ts";

/** The operations of a matched path. */
export interface OperationRoute<O extends Operation> {
  /** Decoded path parameters; null = malformed percent-encoding. */
  readonly params: Readonly<Record<string, string>> | null;
  readonly operations: ReadonlyMap<OperationMethod, O>;
}

interface PathForm<O extends Operation> {
  readonly segments: readonly string[];
  readonly operations: Map<OperationMethod, O>;
}

/**
 * Compiles a route table; the returned function finds the route of a path (without query),
 * undefined = none.
 */
export function createRoutes<O extends Operation>(
  operations: readonly O[],
): (path: string) => OperationRoute<O> | undefined {
  const forms = new Map<string, PathForm<O>>();
  for (const operation of operations) {
    const form = forms.get(operation.path) ?? {
      segments: segmentsOf(operation.path),
      operations: new Map(),
    };
    form.operations.set(operation.method, operation);
    forms.set(operation.path, form);
  }
  const ordered = [...forms.values()].sort(
    (a, b) => parameters(a.segments) - parameters(b.segments),
  );
  return (path) => {
    const segments = segmentsOf(path);
    const form = ordered.find((candidate) => fits(candidate.segments, segments));
    return form === undefined
      ? undefined
      : { params: paramsOf(form.segments, segments), operations: form.operations };
  };
}

/** A trailing slash is ignored. */
function segmentsOf(path: string): readonly string[] {
  return path.replace(/^\//, "").replace(/\/$/, "").split("/");
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

function parameters(segments: readonly string[]): number {
  return segments.filter(isParameter).length;
}

function fits(form: readonly string[], segments: readonly string[]): boolean {
  return (
    form.length === segments.length &&
    form.every((segment, i) =>
      isParameter(segment) ? segments[i] !== "" : segment === segments[i],
    )
  );
}

function paramsOf(
  form: readonly string[],
  segments: readonly string[],
): Readonly<Record<string, string>> | null {
  try {
    return Object.fromEntries(
      form.flatMap((segment, i) =>
        isParameter(segment) ? [[segment.slice(1, -1), decodeURIComponent(segments[i] ?? "")]] : [],
      ),
    );
  } catch {
    return null;
  }
}
