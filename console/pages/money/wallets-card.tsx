// The rails of payments, and what their wallets have for gas.
import type { JSX } from "preact";
import { useResource } from "../../api/resource.ts";
import { useApp } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card } from "../../components/card.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import type { WalletRow } from "./money.ts";

const POLL_MS = 30_000;
const PATH = "/api/v1/operator/wallets";

/** The card. */
export function WalletsCard(): JSX.Element {
  const { client } = useApp();
  const wallets = useResource(PATH, POLL_MS, () =>
    client.request<{ readonly wallets: readonly WalletRow[] }>("GET", PATH),
  );
  return (
    <Card
      title="Rails and wallets"
      lead="As this node last saw them; gas in coins of the chain"
      flush
    >
      <Loaded resource={wallets}>
        {(data) => (
          <Table
            name="wallets"
            caption="Rails and wallets"
            columns={COLUMNS}
            rows={data.wallets}
            keyOf={(row) => `${row.rail} ${row.chain_id} ${row.recipient}`}
            empty="This service takes no payments"
          />
        )}
      </Loaded>
    </Card>
  );
}

const COLUMNS: readonly Column<WalletRow>[] = [
  {
    id: "rail",
    label: "Rail",
    kind: "lead",
    render: (row) => `${row.rail}, chain ${row.chain_id}`,
  },
  {
    id: "recipient",
    label: "Payments go to",
    kind: "wide",
    render: (row) => <span class="mono small wrap-anywhere">{row.recipient}</span>,
  },
  {
    id: "wallet",
    label: "Pays gas",
    kind: "wide",
    render: (row) => (
      <span class="mono small wrap-anywhere">{row.wallet?.address ?? "none needed"}</span>
    ),
  },
  { id: "gas", label: "Gas", kind: "number", render: (row) => <Gas wallet={row.wallet} /> },
];

function Gas({ wallet }: Pick<WalletRow, "wallet">): JSX.Element {
  if (wallet === null) return <span>–</span>;
  const { balance_wei, low, empty, dear } = wallet;
  return (
    <>
      {coinText(balance_wei)} {empty ? <Badge tone="bad">empty</Badge> : null}
      {low && !empty ? <Badge tone="warn">low</Badge> : null}
      {dear ? <Badge tone="warn">gas is dear</Badge> : null}
    </>
  );
}

const WEI_DIGITS = 18;
const SHOWN_DIGITS = 4;

/** Wei as coins, cut to four places. */
function coinText(wei: string): string {
  const digits = wei.padStart(WEI_DIGITS + 1, "0");
  const coins = BigInt(digits.slice(0, -WEI_DIGITS)).toLocaleString("en");
  return `${coins}.${digits.slice(-WEI_DIGITS).slice(0, SHOWN_DIGITS)}`;
}
