// How to call a chain: its addresses, and a first call.
import type { JSX } from "preact";
import { SERVICE_URL } from "../../api/client.ts";
import { Card } from "../../components/card.tsx";
import { Snippet } from "../../components/copy-button.tsx";

interface AddressesProps {
  readonly profile: string;
  readonly chain: string;
}

/** The addresses of a profile on a chain. */
export function Addresses({ profile, chain }: AddressesProps): JSX.Element {
  const folder = profile === "public" ? "rpc/" : `rpc/profile/${encodeURIComponent(profile)}/`;
  const path = `${folder}${encodeURIComponent(chain)}`;
  const address = `${SERVICE_URL.href}${path}`;
  const socket = `${SERVICE_URL.href.replace(/^http/, "ws")}ws/${path}`;
  const body = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}';
  const command = `curl -s ${address} -H 'content-type: application/json' -d '${body}'`;
  return (
    <Card title="Call it">
      <div class="stack">
        <Snippet text={address} what="RPC URL" />
        <Snippet text={socket} what="WebSocket URL" />
        <Snippet text={command} what="curl command" />
      </div>
    </Card>
  );
}
