// One Custom profile: what is saved now, and its editor.
import type { JSX } from "preact";
import type { Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { type App, useApp } from "../../app/app.ts";
import type { PageProps } from "../../app/page.ts";
import { Badge } from "../../components/badge.tsx";
import { Card, PageHead } from "../../components/card.tsx";
import { Loaded } from "../../components/page-state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { ProfileEditor } from "./profile-editor.tsx";

type Profile = AnswerOf<"GET /api/v1/profiles/{slug}">;

const POLL_MS = 10_000;
const NOT_FOUND = 404;

/** The page. */
export function ProfilePage({ params }: PageProps): JSX.Element {
  const { client } = useApp();
  const { slug = "" } = params;
  const rules = useResource("configuration schema", 0, (signal) =>
    client.call("GET /api/v1/configuration-schema", {}, signal),
  );
  const saved = useResource(`profile ${slug}`, POLL_MS, () => savedProfile(client, slug));
  return (
    <>
      <PageHead title={slug} lead="Custom profile" />
      <Loaded resource={saved}>
        {({ profile }) => (
          <>
            {profile === null ? null : <SavedCard profile={profile} />}
            <Loaded resource={rules}>
              {(data) => (
                <ProfileEditor key={slug} {...{ slug, profile, rules: data }} done={saved.reload} />
              )}
            </Loaded>
          </>
        )}
      </Loaded>
    </>
  );
}

/** The profile, null inside = it is yet to be written. */
async function savedProfile(
  client: App["client"],
  slug: string,
): Promise<Result<{ readonly profile: Profile | null }>> {
  const result = await client.call("GET /api/v1/profiles/{slug}", { params: { slug } });
  if (result.kind === "ok") return { ...result, body: { profile: result.body } };
  const { failure } = result;
  return failure.kind === "refused" && failure.status === NOT_FOUND
    ? { kind: "ok", status: NOT_FOUND, body: { profile: null } }
    : result;
}

interface ProviderRow {
  readonly chain: string;
  readonly name: string;
  readonly url: string | null;
  readonly ws_url: string | null;
  readonly status: "verified" | "verifying" | "failed";
}

function SavedCard({ profile }: { readonly profile: Profile }): JSX.Element {
  const rows = Object.entries(profile.chains).flatMap(([chain, { providers }]) =>
    providers.map(
      ({ name, url, ws_url, status }): ProviderRow => ({ chain, name, url, ws_url, status }),
    ),
  );
  return (
    <Card
      title={`Revision ${profile.revision}`}
      lead={
        <>
          Saved <Time at={profile.updated_at} />, {profile.state}
        </>
      }
      flush
    >
      <Table
        name="providers"
        caption="Providers of the profile"
        columns={PROVIDER_COLUMNS}
        rows={rows}
        keyOf={(row) => `${row.chain} ${row.name}`}
        textOf={(row) => `${row.chain} ${row.name}`}
      />
    </Card>
  );
}

const TONES = { verified: "good", verifying: "warn", failed: "bad" } as const;

const PROVIDER_COLUMNS: readonly Column<ProviderRow>[] = [
  {
    id: "name",
    label: "Provider",
    kind: "lead",
    value: (row) => row.name,
    render: (row) => <bdi>{row.name}</bdi>,
  },
  { id: "chain", label: "Chain", value: (row) => row.chain, render: (row) => row.chain },
  {
    id: "status",
    label: "Now",
    value: (row) => row.status,
    render: (row) => <Badge tone={TONES[row.status]}>{row.status}</Badge>,
  },
  {
    id: "url",
    label: "Address",
    kind: "wide",
    render: (row) => (
      <span class="mono small">
        {[row.url, row.ws_url].filter((url) => url !== null).join(" ")}
      </span>
    ),
  },
];
