// The end of an ethers provider in a test.
import type { JsonRpcApiProvider } from "ethers";

/**
 * Ends a provider. Destroyed while the poll of a filter is under way, ethers polls for blocks from
 * then on, and its timer keeps the process of the test alive for ever; a paused one does not.
 */
export function endProvider(provider: JsonRpcApiProvider): void {
  provider.pause(true);
  provider.destroy();
}
