// The bounds of memory and connections of one of several workers: the service's, divided evenly.
import type { Config } from "../../config/config.ts";

/** So many of the largest requests of one caller fit into a worker, however many there are. */
const LEAST_BODIES = 2;

/** The configuration of a service as one of its workers applies it. */
export function workerConfig(config: Config, workers: number): Config {
  if (workers === 1) return config;
  const { limits } = config;
  const { maxInFlightBytes, maxCallerBytes, maxBodyBytes } = limits;
  const part = (whole: number): number => Math.max(1, Math.floor(whole / workers));
  const inFlight = part(maxInFlightBytes);
  const least = Math.min(maxCallerBytes, LEAST_BODIES * maxBodyBytes);
  const { cache } = config;
  return {
    ...config,
    cache:
      cache === null
        ? null
        : {
            ...cache,
            maxBytes: part(cache.maxBytes),
            accountMaxBytes: Math.floor(cache.accountMaxBytes / workers),
          },
    limits: {
      ...limits,
      maxInFlightBytes: inFlight,
      maxCallerBytes: Math.min(inFlight, Math.max(part(maxCallerBytes), least)),
      maxFilterBytes: part(limits.maxFilterBytes),
      maxConnections: part(limits.maxConnections),
    },
  };
}
