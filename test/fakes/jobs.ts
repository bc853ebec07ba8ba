// The jobs of a process that serves alone.
import { claimsOf } from "../../src/shared/nodes/job-claims.ts";

/** Every job is this process's. */
export const ALONE = claimsOf({ self: "1", ownerOf: () => "1" });
