// The header in which each service leaves a mark on a request that it passes on. A service that
// finds its own mark knows that a Custom profile leads back to it.

/** The header that carries the marks of the services that a request has passed, in lower case. */
export const PASSED_HEADER = "x-svc-from";
/** Most services that a request may have passed. */
export const MAX_PASSED = 4;

/** The marks in that header. What is no mark is not passed on. */
export function passedServices(header: string | undefined): readonly string[] {
  const marks = header?.split(",", MAX_PASSED + 1).map((mark) => mark.trim()) ?? [];
  return marks.filter((mark) => MARK.test(mark));
}

/** The header of a request that goes on from this service. */
export function passedOn(passed: readonly string[], mark: string): string {
  return [...passed, mark].join(", ");
}

const MARK = /^[0-9a-f]{16}$/;
