// Schemas of the nodes that serve together, as an operator sees them: load, jobs, clocks, and how
// each finds the providers.
import { z } from "zod";

const count = z.int().min(0);
const amount = z.number().min(0);

/** What one process tells of itself; also kept in the database, where other versions read it. */
export const processReport = z.object({
  version: z.string(),
  worker: z.string().nullable().describe("Null = this process is the whole node."),
  started_at: z.iso.datetime(),
  draining: z.boolean(),
  calls_per_s: amount.nullable().describe("Calls of callers; null = not measured yet."),
  cpu_cores: amount.nullable().describe("Processor time, in cores; null = not measured yet."),
  event_loop_busy: amount.nullable().describe("0 to 1: 1 = everything waits."),
  memory_bytes: count,
});

/** How a node finds a provider. */
const seenProvider = z.object({
  circuit: z
    .enum(["closed", "recovered", "never_answered", "half_open", "open", "cordoned"])
    .describe("The worst transport."),
  success_rate: z.number().nullable(),
  latency_ms: amount.nullable(),
  lag_blocks: count.nullable(),
});

/** The providers of a node, as it tells of them. */
export const providerReports = z.array(
  seenProvider.extend({ profile: z.string(), chain: z.string(), provider: z.string() }),
);

const node = z
  .object({
    id: z.string(),
    alias: z.string().nullable().describe("As callers see it; null where one node serves alone."),
    this: z.boolean().describe("Whether it is the node that answers."),
    region: z.string().nullable(),
    state: z
      .enum(["live", "draining", "silent", "gone"])
      .describe("`silent`: no heartbeat lately; `gone`: it left, or was found dead."),
    version: z.string().nullable(),
    started_at: z.iso.datetime().nullable(),
    last_heartbeat_at: z.iso
      .datetime()
      .nullable()
      .describe("By the clock of the database; null where one node serves alone."),
    clock_ahead_ms: z.int().nullable().describe("Its clock less that of the database."),
    calls_per_s: amount.nullable().describe("Of all its workers."),
    cpu_cores: amount.nullable(),
    memory_bytes: count.nullable().describe("Of its workers, without their supervisor."),
    workers: z.array(processReport),
    jobs: z.array(z.string()).describe("What it does for all nodes, or did last."),
  })
  .meta({ id: "ServiceNode", description: "A node of the service. Null = unknown." });

/** Answer of `listNodes`. */
export const nodes = z
  .object({
    clustered: z.boolean().describe("False = one node serves alone, and does every job."),
    nodes: z.array(node),
    jobs: z.array(
      z.object({
        name: z.string(),
        node: z.string().describe("That does it, or did it last."),
        running: z.boolean(),
        due_at: z.iso.datetime(),
      }),
    ),
    providers: z
      .array(
        z.object({
          profile: z.string(),
          chain: z.string(),
          provider: z.string(),
          seen: z.array(seenProvider.extend({ node: z.string() })),
        }),
      )
      .describe("The same providers as each node finds them, at most 500 of a node."),
    problems: z.array(z.string()).describe("What cannot be told of, and why; clocks apart."),
  })
  .meta({
    id: "Nodes",
    description:
      "The nodes that serve together. Those of other nodes are observations that they write every " +
      "five seconds; after half a minute without one their load is unknown.",
  });
