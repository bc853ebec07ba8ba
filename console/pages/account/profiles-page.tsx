// The Custom profiles of the account: the list, and where a new one begins.

import { useState } from "preact/hooks";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useApp, useCall } from "../../app/app.ts";
import { pathTo } from "../../app/router.ts";
import { Card, PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Button, Field, Form } from "../../components/controls.tsx";
import { Badge, Link, Time, type Word } from "../../components/inline.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { count, plural } from "../../format/text.ts";

type Profiles = AnswerOf<"GET /api/v1/profiles">;
type Profile = Profiles["profiles"][number];

const POLL_MS = 10_000;

/** The page. */
export function ProfilesPage() {
  const { router } = useApp();
  const profiles = useCall("GET /api/v1/profiles", {}, POLL_MS);
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
            <TableCard
              title="Profiles"
              lead={`${data.profiles.length} of ${plural(data.max_profiles, "profile")}`}
              name="profiles"
              caption="Custom profiles"
              columns={COLUMNS}
              rows={data.profiles}
              keyOf={(row) => row.slug}
              textOf={(row) => `${row.slug} ${row.name ?? ""}`}
              open={(row) => open(row.slug)}
              empty="No profile yet"
            />
            <NewProfile open={open} />
          </>
        )}
      </Loaded>
    </>
  );
}

function Access({ profiles }: { readonly profiles: Profiles }) {
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

function NewProfile({ open }: { readonly open: (slug: string) => void }) {
  const [slug, setSlug] = useState("");
  return (
    <Card title="New profile">
      <Form class="filters" submit={() => open(slug)}>
        <Field
          label="Name in URLs"
          class="mono"
          required
          pattern="[a-z0-9][a-z0-9\-]{1,62}"
          title="2 to 63 lower-case letters, digits and hyphens"
          value={slug}
          change={setSlug}
        />
        <Button>Write the profile</Button>
      </Form>
    </Card>
  );
}

const STATES: Readonly<Record<Profile["state"], Word>> = {
  active: { tone: "good", word: "active" },
  suspended: { tone: "warn", word: "suspended: Custom access has ended" },
  unreadable: { tone: "bad", word: "unreadable: send it again" },
};

const COLUMNS: readonly Column<Profile>[] = [
  column.text("slug", "Profile", (row) => row.slug, {
    kind: "lead",
    render: ({ slug }) => <Link to={pathTo("account", "profiles", slug)}>{slug}</Link>,
    note: ({ name }) => <bdi>{name}</bdi>,
  }),
  column.state("state", "State", ({ state }) => STATES[state]),
  column.of("providers", "Providers", (row) => <Providers profile={row} />),
  column.number("revision", "Revision", (row) => row.revision),
  column.time("updated", "Saved", (row) => row.updated_at),
];

function Providers({ profile }: { readonly profile: Profile }) {
  const providers = Object.values(profile.chains).flatMap((chain) => chain.providers);
  const failed = providers.filter(({ status }) => status === "failed").length;
  return (
    <>
      {count(providers.length)}
      {failed === 0 ? null : <Badge tone="bad">{failed} failed</Badge>}
    </>
  );
}
