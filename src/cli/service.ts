// The port to a running service, of one process or of several workers.
import type { Config } from "../config/config.ts";

/** A running service. */
export interface Service {
  readonly port: number;
  /** Applies another configuration. Resolves with why it was rejected, or null. */
  reload(config: Config): Promise<string | null>;
  /** Completes accepted requests. */
  close(): Promise<void>;
  /** Ends child processes at once that would outlive this process. */
  kill(): void;
}
