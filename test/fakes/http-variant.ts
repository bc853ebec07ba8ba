// Which HTTP implementations a walk runs on: the service's own ones, or node's HTTP server and
// undici where the environment says so. Settings that a test makes itself stay as they are.

/** The variable, and the value that switches both own implementations off. */
export const HTTP_VARIANT = "SVC_TEST_HTTP";
export const LIBRARIES = "libraries";

/** True where the walk runs on node's HTTP server and undici. */
export const runsOnLibraries = process.env[HTTP_VARIANT] === LIBRARIES;

/** The same configuration with the switches of the variant; text that is no JSON stays as it is. */
export function withHttpVariant(text: string): string {
  if (!runsOnLibraries || !text.startsWith("{")) return text;
  const file: Record<string, unknown> = JSON.parse(text);
  return JSON.stringify({
    ...file,
    server: { fast_path: "off", ...sectionOf(file["server"]) },
    upstream: { http: "undici", ...sectionOf(file["upstream"]) },
  });
}

function sectionOf(value: unknown): object {
  return typeof value === "object" && value !== null ? value : {};
}
