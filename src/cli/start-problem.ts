// Explains to the operator why a service failed to start.
import type { Config } from "../config/config.ts";
import { errorText } from "../core/fields.ts";
import { codeOf } from "./command.ts";

/** The message for an error at the start. */
export function startProblem(error: unknown, { server }: Config): string {
  if (isListening(error))
    return (
      `cannot listen on ${server.host}:${server.port} (${codeOf(error)}); choose another with ` +
      "--port or --host"
    );
  return errorText(error);
}

/** A worker gets its socket from the supervisor, which binds the port. */
function isListening(error: unknown): boolean {
  return (
    error instanceof Error &&
    "syscall" in error &&
    (error.syscall === "listen" || error.syscall === "bind")
  );
}
