// The mark on requests to users' providers, by which the service recognises a provider that leads
// back to itself. Not secret: who repeats it is refused, and nobody else.
import { createHash, createHmac } from "node:crypto";

const CHARS = 16;

/**
 * The mark of a service, equal in all of its processes. `secret`: of all nodes, null = there is
 * one; `place`: where the service is reached.
 */
export function serviceMark(secret: string | null, place: string): string {
  const digest =
    secret === null
      ? createHash("sha256").update(`svc at ${place}`).digest("hex")
      : createHmac("sha256", secret).update("requests to users' providers").digest("hex");
  return digest.slice(0, CHARS);
}
