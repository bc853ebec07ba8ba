// What needs a single process: channels of pay per call are in the memory of the process that took
// their vouchers. Says which settings ask for several processes beside it. Works on data that has
// not been validated; knows no positions in the file.
import type { Breach } from "./rules.ts";

/** The settings of a service, and what overrides `server.workers`. */
export interface ProcessSettings {
  readonly file: unknown;
  readonly environment: unknown;
  readonly flag: unknown;
}

/** A setting that asks for several processes, and where it was given. */
export interface ProcessBreach extends Breach {
  readonly source: "file" | "environment" | "flag";
}

const WHY =
  "beside a rail of kind `session` (hosted.payments.rails): the channels of pay per call are in " +
  "the memory of one process. Serve pay per call with an instance of its own";

/** The settings that ask for several processes beside pay per call. */
export function oneProcessBreaches(settings: ProcessSettings): readonly ProcessBreach[] {
  const { file } = settings;
  if (!hasSessions(file)) return [];
  const breaches: ProcessBreach[] = [];
  const workers = givenWorkers(settings);
  if (typeof workers?.value === "number" && workers.value > 1) {
    const { source, path } = workers;
    breaches.push({ source, path, at: "value", message: `must be 1 or \`auto\` ${WHY}` });
  }
  if (at(file, ["cluster", "enabled"]) === true) {
    const path = ["cluster", "enabled"];
    breaches.push({ source: "file", path, at: "value", message: `must be false ${WHY}` });
  }
  return breaches;
}

function hasSessions(file: unknown): boolean {
  const rails = at(file, ["hosted", "payments", "rails"]);
  return (
    at(file, ["hosted", "enabled"]) === true &&
    Array.isArray(rails) &&
    rails.some((rail) => at(rail, ["kind"]) === "session")
  );
}

type GivenWorkers = Pick<ProcessBreach, "source" | "path"> & { readonly value: unknown };

/** The number of workers that counts. */
function givenWorkers({ file, environment, flag }: ProcessSettings): GivenWorkers | null {
  if (flag !== undefined) return { source: "flag", path: ["workers"], value: flag };
  if (environment !== undefined)
    return { source: "environment", path: ["SVC_WORKERS"], value: environment };
  const path = ["server", "workers"];
  return { source: "file", path, value: at(file, path) };
}

function at(data: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>(
    (value, name) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, name)
        ? Reflect.get(value, name)
        : undefined,
    data,
  );
}
