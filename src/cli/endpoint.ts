// Addresses on a command line or in a file as the provider that is asked, and as they may be shown.
import { loadConfig } from "../config/config.ts";
import type { Provider } from "../core/provider/profile.ts";
import { withoutUrlSecrets } from "../core/redact/url.ts";
import type { CommandInput } from "./command.ts";

/** An id that no network has: it is not compared with what endpoints say. */
const PROBED = 4_294_967_295;

/**
 * The provider with these settings of `svc.yml`; references in them are to `env`. Null = the
 * settings are not valid, or a variable is not set.
 */
export function endpointWith(settings: object, env: CommandInput["env"]): Provider | null {
  const providers = [{ ...settings, id: "endpoint" }];
  const text = JSON.stringify({
    chains: { probed: { chain_id: PROBED } },
    profiles: { probe: { chains: { probed: { providers } } } },
  });
  const result = loadConfig({ file: "", text, env, flags: {} });
  if (!result.ok) return null;
  return result.config.profiles[0]?.chains.get("probed")?.providers[0] ?? null;
}

/** An address without its keys. */
export function shownAddress(url: string): string {
  return withoutUrlSecrets(url, "[redacted]");
}
