// Icons, drawn here: nothing is loaded for them.

const PATHS = {
  overview: "M2 9h4l2-6 3 11 2-5h3",
  chain:
    "M6.5 9.5 9.5 6.5M7 4.5 8.5 3a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7",
  requests: "M2 4h8M2 8h12M2 12h6",
  tester: "M4 2.5v11l9-5.5z",
  streams: "M2 5c2-2.5 4-2.5 6 0s4 2.5 6 0M2 11c2-2.5 4-2.5 6 0s4 2.5 6 0",
  errors: "M8 2.5 14.5 13.5H1.5zM8 6.5v3.2M8 11.6v.2",
  money:
    "M8 1.5v13M11 4.5C10 3.5 9 3.3 8 3.3c-1.7 0-3 .8-3 2.2 0 3.2 6.2 1.6 6.2 4.9 0 1.5-1.4 2.3-3.2 2.3-1.3 0-2.5-.4-3.3-1.3",
  account: "M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8M2.5 14c.6-3 2.8-4.3 5.5-4.3s4.9 1.3 5.5 4.3",
  key: "M10.5 2.5a3 3 0 1 1-2.6 4.5L2.5 12.4v1.6h2v-1.5H6V11h1.5",
  cluster: "M8 2v4M8 6 3.5 10M8 6l4.5 4M6.5 1.5h3v3h-3zM2 10h3v3.5H2zM11 10h3v3.5h-3z",
  menu: "M2 4h12M2 8h12M2 12h12",
  close: "m3.5 3.5 9 9M12.5 3.5l-9 9",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5l3.5 3.5",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  pause: "M5 3v10M11 3v10",
  play: "M4 2.5v11l9-5.5z",
} as const;

/** The icons that there are. */
export type IconName = keyof typeof PATHS;

/** An icon beside a word that says the same. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
