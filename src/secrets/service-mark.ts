// The mark on requests to users' providers, by which the service recognises a provider that leads
// back to itself. Not secret: who repeats it is refused, and nobody else.
import { createHash, createHmac } from "node:crypto";

const CHARS = 16;

/** Tells one service from another; equal in all processes of a service. */
export interface ServiceIdentity {
  /** Of all nodes; null = there is one. */
  readonly secret: string | null;
  /** Where it is reached. */
  readonly place: string;
}

/** The mark of a service. */
export function serviceMark({ secret, place }: ServiceIdentity): string {
  const digest =
    secret === null
      ? createHash("sha256").update(`svc at ${place}`).digest("hex")
      : createHmac("sha256", secret).update("requests to users' providers").digest("hex");
  return digest.slice(0, CHARS);
}
