// A running service as `svc serve` holds it, of one process or of several. Knows neither.
import type { Config } from "../config/config.ts";

/** A running service. */
export interface Service {
  readonly port: number;
  /** Resolves with why another configuration was not taken, or null. */
  reload(config: Config): Promise<string | null>;
  /** Finishes what was accepted. */
  close(): Promise<void>;
  /** Ends at once what a process that exits would leave behind. */
  kill(): void;
}
