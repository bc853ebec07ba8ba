// The Custom profiles of the account: the list, and where a new one begins.
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { pathTo } from "../../app/address.ts";
import { useApp } from "../../app/app.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, PageHead } from "../../components/card.tsx";
import { numberColumn } from "../../components/columns.ts";
import { Link } from "../../components/link.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { count, plural } from "../../format/numbers.ts";
import type { Tone } from "../../format/tone.ts";

type Profiles = AnswerOf<"GET /api/v1/profiles">;
type Profile = Profiles["profiles"][number];

const POLL_MS = 10_000;

/** The page. */
export function ProfilesPage(): JSX.Element {
  const { client, router } = useApp();
  const profiles = useResource("profiles", POLL_MS, (signal) =>
    client.call("GET /api/v1/profiles", {}, signal),
  );
  const open = (slug: string): void => router.go(pathTo("account", "profiles", slug));
  return (
    <>
      <PageHead
        title="Custom profiles"
        lead="Your own providers behind the routing, failover and health of this service."
      />
      <Loaded resource={profiles}>
        {(data) => (
          <>
            <Access profiles={data} />
            <Card
              title="Profiles"
              lead={`${data.profiles.length} of ${plural(data.max_profiles, "profile")}`}
              flush
            >
              <Table
                name="profiles"
                caption="Custom profiles"
                columns={COLUMNS}
                rows={data.profiles}
                keyOf={(row) => row.slug}
                textOf={(row) => `${row.slug} ${row.name ?? ""}`}
                open={(row) => open(row.slug)}
                empty="No profile yet"
              />
            </Card>
            <NewProfile open={open} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Access({ profiles }: { readonly profiles: Profiles }): JSX.Element {
  const until = profiles.custom_access?.until ?? null;
  if (until === null)
    return (
      <p class="notice warn">
        The account has no Custom access: profiles are neither saved nor served.{" "}
        <Link to="/account/payments">Buy days</Link>
      </p>
    );
  return (
    <p class="muted small">
      Custom access ends <Time at={until} />.
    </p>
  );
}

function NewProfile({ open }: { readonly open: (slug: string) => void }): JSX.Element {
  const [slug, setSlug] = useState("");
  return (
    <Card title="New profile">
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          open(slug);
        }}
      >
        <div class="field">
          <label for="slug">Name in URLs</label>
          <input
            id="slug"
            class="input mono"
            required
            pattern="[a-z0-9][a-z0-9\-]{1,62}"
            title="2 to 63 lower-case letters, digits and hyphens"
            value={slug}
            onInput={(event) => setSlug(event.currentTarget.value)}
          />
        </div>
        <button type="submit" class="button">
          Write the profile
        </button>
      </form>
    </Card>
  );
}

const STATES: Readonly<Record<Profile["state"], { readonly tone: Tone; readonly words: string }>> =
  {
    active: { tone: "good", words: "active" },
    suspended: { tone: "warn", words: "suspended: Custom access has ended" },
    unreadable: { tone: "bad", words: "unreadable: send it again" },
  };

const COLUMNS: readonly Column<Profile>[] = [
  {
    id: "slug",
    label: "Profile",
    kind: "lead",
    value: (row) => row.slug,
    render: (row) => (
      <>
        <Link to={pathTo("account", "profiles", row.slug)}>{row.slug}</Link>{" "}
        <bdi class="muted small">{row.name}</bdi>
      </>
    ),
  },
  {
    id: "state",
    label: "State",
    render: (row) => <Badge tone={STATES[row.state].tone}>{STATES[row.state].words}</Badge>,
  },
  {
    id: "providers",
    label: "Providers",
    render: (row) => <Providers profile={row} />,
  },
  numberColumn("revision", "Revision", (row) => row.revision),
  {
    id: "updated",
    label: "Saved",
    value: (row) => Date.parse(row.updated_at ?? ""),
    render: (row) => <Time at={row.updated_at} />,
  },
];

function Providers({ profile }: { readonly profile: Profile }): JSX.Element {
  const providers = Object.values(profile.chains).flatMap((chain) => chain.providers);
  const failed = providers.filter(({ status }) => status === "failed").length;
  return (
    <>
      {count(providers.length)}
      {failed === 0 ? null : <Badge tone="bad">{failed} failed</Badge>}
    </>
  );
}
