// One Custom profile: what is saved now, and its editor.

import type { Result } from "../../api/client.ts";
import type { AnswerOf } from "../../api/contract-types.ts";
import { useResource } from "../../api/resource.ts";
import { type App, type PageProps, useApp, useCall } from "../../app/app.ts";
import { PageHead } from "../../components/card.tsx";
import * as column from "../../components/columns.tsx";
import { Time } from "../../components/inline.tsx";
import { isMissing, Loaded } from "../../components/page-state.tsx";
import { type Column, TableCard } from "../../components/table.tsx";
import { textList } from "../../format/text.ts";
import { ProfileEditor } from "./profile-editor.tsx";

type Profile = AnswerOf<"GET /api/v1/profiles/{slug}">;

const POLL_MS = 10_000;

/** The page. */
export function ProfilePage({ params }: PageProps) {
  const { client } = useApp();
  const { slug = "" } = params;
  const rules = useCall("GET /api/v1/configuration-schema", {});
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
  return isMissing(result.failure) ? { kind: "ok", body: { profile: null } } : result;
}

type ProviderRow = Profile["chains"][string]["providers"][number] & { readonly chain: string };

function SavedCard({ profile }: { readonly profile: Profile }) {
  const rows = Object.entries(profile.chains).flatMap(([chain, { providers }]) =>
    providers.map((provider): ProviderRow => ({ ...provider, chain })),
  );
  return (
    <TableCard
      title={`Revision ${profile.revision}`}
      lead={
        <>
          Saved <Time at={profile.updated_at} />, {profile.state}
        </>
      }
      name="providers"
      caption="Providers of the profile"
      columns={PROVIDER_COLUMNS}
      rows={rows}
      keyOf={(row) => `${row.chain} ${row.name}`}
      textOf={(row) => `${row.chain} ${row.name}`}
    />
  );
}

const TONES = { verified: "good", verifying: "warn", failed: "bad" } as const;

const PROVIDER_COLUMNS: readonly Column<ProviderRow>[] = [
  column.text("name", "Provider", (row) => row.name, { kind: "lead" }),
  column.text("chain", "Chain", (row) => row.chain),
  column.state("status", "Now", ({ status: word }) => ({ tone: TONES[word], word }), {
    value: ({ status }) => status,
  }),
  column.of(
    "url",
    "Address",
    ({ url, ws_url }) => <code>{textList([url, ws_url], " ")}</code>,
    "wide",
  ),
];
