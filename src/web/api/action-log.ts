// The lines that say what operators did, one for each change.
import type { Logger } from "pino";
import type { OperatorRecords } from "../../hosted/operator/stored-records.ts";
import type { Runtime } from "../../runtime.ts";
import { newId } from "../../secrets/secret.ts";
import type { ApiCaller } from "../contract/operation.ts";
import { type AnyHandler, type AnyResult, inputOf, type OperationRequest } from "./operation.ts";
import type { RecordAction, ReloadOutcome } from "./parts.ts";

export interface ActionLogParts {
  readonly runtime: Runtime;
  readonly records: OperatorRecords;
  /** Null = the service is one node. */
  readonly node: string | null;
  readonly log: Pick<Logger, "error">;
}

/** Creates the function that writes lines. */
export function createActionLog({ runtime, records, node, log }: ActionLogParts): RecordAction {
  return async (action) => {
    const atMs = runtime.wallMs();
    const line = { ...action, id: newId("act", atMs), atMs, node };
    await records.addAction(line).catch(() => {
      const { actor, action: name, target, outcome } = line;
      log.error({ actor, action: name, target, outcome }, "an operator's action was not recorded");
    });
  };
}

/** Serves a call that costs nothing, and writes a line if the operator changed something. */
export async function handled<Parts extends { readonly recordAction: RecordAction }>(
  parts: Parts,
  handler: AnyHandler<Parts>,
  asked: OperationRequest,
  caller: ApiCaller,
): Promise<AnyResult> {
  const input = inputOf(asked);
  if (input.kind === "api_fault") return input;
  const result = await handler({ ...input, caller }, parts);
  if (caller.kind !== "operator" || asked.operation.method === "GET") return result;
  const fields = { ...scalars(input.params), ...scalars(input.query), ...scalars(input.body) };
  const { id, profile, chain, provider, ...rest } = fields;
  const target = [id, profile, chain, provider].filter((part) => part !== undefined).join("/");
  const noted = result.kind === "answer" ? result.noted : undefined;
  const given = Object.entries(rest).map(([name, value]) => `${name}: ${value}`);
  const detail = noted === undefined ? given : [...given, noted.detail];
  await parts.recordAction({
    actor: caller.actor,
    address: input.address,
    action: asked.operation.id,
    target: target === "" ? null : target.slice(0, MAX_CHARS),
    detail: detail.length === 0 ? null : detail.join(", ").slice(0, MAX_CHARS),
    outcome: result.kind === "answer" && noted?.isDone !== false ? "done" : "refused",
  });
  return result;
}

/** What the line of a reload says of it. */
export function reloadDetail({ problem, revision }: ReloadOutcome): string {
  const read = revision === null ? null : `revision ${revision}`;
  return [read, problem]
    .filter((part) => part !== null)
    .join(": ")
    .slice(0, MAX_CHARS);
}

const MAX_CHARS = 500;

/** Texts, numbers and flags of an input; lists, such as parameters of calls, are left out. */
function scalars(input: unknown): Readonly<Record<string, string>> {
  if (typeof input !== "object" || input === null) return {};
  return Object.fromEntries(
    Object.entries(input).flatMap(([name, value]) =>
      typeof value === "string" || typeof value === "number" || typeof value === "boolean"
        ? [[name, String(value)]]
        : [],
    ),
  );
}
