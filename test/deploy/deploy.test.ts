// The files to deploy with: each keeps to the schema of its tool, and names only settings,
// variables, ports and paths that exist. Starts no container and no cluster.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { BlockList, isIP } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { CLOSE_MS } from "../../src/cli/supervise.ts";
import type { Config } from "../../src/config/config.ts";
import { formatFaults } from "../../src/config/config-fault.ts";
import { environment } from "../../src/config/schema.ts";
import { OPERATIONS } from "../../src/web/contract/contract.ts";
import { trustedProxiesOf } from "../../src/web/http/client-address.ts";
import { load } from "../config/config-fixture.ts";
import { manifestFaults } from "./manifest-schemas.ts";

const ROOT = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const NODE_FILE = read("deploy/svc.yml");
/** A value for every variable that a node is given. */
const VALUES: Readonly<Record<string, string>> = {
  NODE_ENV: "production",
  SVC_PUBLIC_URL: "https://rpc.example.com",
  SVC_SECRET: "a secret of at least thirty-two bytes",
  SVC_OPERATOR_TOKEN: "an-operator-token-of-a-length",
  SVC_TRUSTED_PROXIES: "10.0.0.0/8, fd00::/8",
  SVC_REGION: "",
  DATABASE_URL: "postgres://svc:secret@postgres:5432/svc",
};
/** Variables of the file, and those of the service that a node needs. */
const REFERENCES = new Set(
  [...NODE_FILE.matchAll(/^[^#\n]*\$\{(\w+)\}/gm)].map(([, name]) => name ?? ""),
);
const NEEDED = new Set([...REFERENCES, "SVC_SECRET", "DATABASE_URL"]);
const KNOWN = new Set([...REFERENCES, ...Object.keys(environment.shape)]);

// biome-ignore-start lint/suspicious/noExplicitAny: these documents have any shape until checked
type Shape = any;
const yaml = (path: string): Shape => parse(read(path), { merge: true });
// biome-ignore-end lint/suspicious/noExplicitAny: as above

function nodeConfig(): Config {
  const result = load(NODE_FILE, VALUES);
  if (!result.ok) assert.fail(formatFaults(result.faults));
  assert.deepEqual(result.warnings, []);
  return result.config;
}

/** The longest that a node may take to stop: the drain, and writing what was used. */
const stopSeconds = (): number => (nodeConfig().limits.drainTimeoutMs + CLOSE_MS) / 1000;

function assertServed(path: string): void {
  assert.ok(
    OPERATIONS.some((operation) => operation.method === "GET" && operation.path === path),
    `GET ${path}`,
  );
}

function seconds(text: string): number {
  const [, number] = /^(\d+)s$/.exec(text) ?? [];
  return Number(number);
}

test("the configuration of a node is accepted in production, and its every variable is needed", () => {
  const { server, storageUrl, hosted } = nodeConfig();
  assert.deepEqual([server.port, server.trustedProxies], [4000, ["10.0.0.0/8", "fd00::/8"]]);
  const { cluster } = yaml("deploy/svc.yml");
  assert.equal(cluster.enabled, true);
  assert.equal(
    cluster.node_id,
    undefined,
    "after a crash a node would wait for its own row to end",
  );
  assert.ok(hosted !== null && storageUrl === VALUES["DATABASE_URL"]);
  for (const name of REFERENCES) {
    const { [name]: _, ...others } = VALUES;
    assert.ok(!load(NODE_FILE, others).ok, name);
  }
});

/** What HAProxy opens besides connections: listeners, logs, checks, pipes of its threads. */
const BALANCER_FILES = 1_000;

const composeSchema = (): ((data: unknown) => boolean) => {
  const { $schema: _, ...schema } = JSON.parse(
    readFileSync(
      new URL("schemas/compose.schema.json", import.meta.resolve("dclint/package.json")),
      "utf8",
    ),
  );
  return new Ajv({ strict: false, validateFormats: false, logger: false }).compile(schema);
};

test("compose.yml keeps to the schema of Compose", () => {
  const isValid = composeSchema();
  assert.ok(isValid(yaml("deploy/compose.yml")));
  const misspelt = yaml("deploy/compose.yml");
  misspelt.services.node1.healthcheck.intervall = "5s";
  assert.ok(!isValid(misspelt), "the schema is strict");
});

test("compose.yml: three nodes of one configuration, told apart by their machines, on one PostgreSQL of version 15 or newer", () => {
  const { services, networks } = yaml("deploy/compose.yml");
  const [{ gateway }] = networks.inside.ipam.config;
  const nodes = Object.entries<Shape>(services).filter(([, it]) => it.image === "svc");
  assert.deepEqual(
    nodes.map(([name]) => name),
    ["node1", "node2", "node3"],
  );
  for (const [name, node] of nodes) {
    const given = Object.keys(node.environment);
    assert.deepEqual(
      [...NEEDED].filter((variable) => !given.includes(variable)),
      [],
    );
    assert.deepEqual(
      given.filter((variable) => !KNOWN.has(variable)),
      [],
    );
    assert.equal(node.hostname, name, "the name of a machine begins the id of its node");
    const trusted = trustedProxiesOf(node.environment.SVC_TRUSTED_PROXIES.split(","));
    assert.ok(trusted.check(services.balancer.networks.inside.ipv4_address));
    assert.ok(!trusted.check(gateway), "whoever connects from this machine may claim any address");
    assert.ok(node.environment.DATABASE_URL.endsWith("@postgres:5432/svc"));
    assert.deepEqual(node.volumes, ["./svc.yml:/app/svc.yml:ro"]);
    const [, path] = /"http:\/\/127\.0\.0\.1:4000(\/[^"]*)"/.exec(node.healthcheck.test[3]) ?? [];
    assertServed(path ?? "");
    assert.ok(seconds(node.stop_grace_period) > stopSeconds());
  }
  assert.equal(nodeConfig().cluster.expectedNodes, nodes.length);
  const [, version] = /^\$\{POSTGRES_IMAGE:-postgres:(\d+)\}$/.exec(services.postgres.image) ?? [];
  assert.ok(Number(version) >= 15);
});

test("a container of compose.yml has bounds, no rights beyond its own, and logs that end", () => {
  const { services } = yaml("deploy/compose.yml");
  for (const [name, it] of Object.entries<Shape>(services)) {
    assert.match(it.mem_limit, /^\d+g$/, name);
    assert.ok(it.pids_limit > 0 && it.read_only === true, name);
    assert.deepEqual([it.cap_drop, it.cap_add], [["ALL"], undefined], name);
    assert.deepEqual(it.security_opt, ["no-new-privileges:true"], name);
    assert.match(it.user, /^(?!root|0)/, name);
    const { "max-size": size, "max-file": files } = it.logging.options;
    assert.ok(/^\d+m$/.test(size) && Number(files) > 0, name);
  }
  const { maxConnections } = nodeConfig().limits;
  assert.ok(services.node1.ulimits.nofile > 2 * maxConnections);
  const [, connections] = /^ {2}maxconn (\d+)$/m.exec(read("deploy/haproxy.cfg")) ?? [];
  const files = services.balancer.ulimits.nofile;
  assert.ok(files > 2 * Number(connections) + BALANCER_FILES, `${files} for ${connections}`);
});

test("the health check of compose.yml runs as it stands", () => {
  const { test: check } = yaml("deploy/compose.yml").services.node1.healthcheck;
  const [, , flag, script] = check;
  const run = spawnSync(process.execPath, [flag, script.replace(":4000", ":9")]);
  assert.equal(run.status, 1, String(run.stderr));
});

/** Directives of a HAProxy configuration by section. */
function sectionsOf(text: string): ReadonlyMap<string, readonly string[]> {
  const sections = new Map<string, readonly string[]>();
  let section = "";
  for (const line of text.split("\n")) {
    const directive = line.replace(/#.*/, "").trim();
    if (directive === "") continue;
    if (/^\S/.test(line)) section = directive;
    sections.set(section, [...(sections.get(section) ?? []), directive]);
  }
  return sections;
}

test("the balancer asks every node of compose.yml whether it is ready and lives, and leaves WebSockets open", () => {
  const sections = sectionsOf(read("deploy/haproxy.cfg"));
  const { services } = yaml("deploy/compose.yml");
  const nodes = Object.keys(services)
    .filter((name) => services[name].image === "svc")
    .map((name) => `server ${name} ${name}:${nodeConfig().server.port}`);
  for (const [backend, path] of [
    ["ready", "/api/ready"],
    ["living", "/api/health"],
  ]) {
    const lines = sections.get(`backend ${backend}`) ?? [];
    assert.deepEqual(
      lines.filter((line) => line.startsWith("server ")),
      nodes,
    );
    assert.ok(lines.includes(`http-check send meth GET uri ${path}`));
    assertServed(path ?? "");
  }
  const [, port] = /bind :(\d+)/.exec((sections.get("frontend callers") ?? []).join("\n")) ?? [];
  assert.ok(services.balancer.ports[0].endsWith(`:${port}`));
  const { limits, deadlines } = nodeConfig();
  const defaults = sections.get("defaults") ?? [];
  const timeout = (name: string): number => {
    const [, value] =
      defaults.map((it) => RegExp(`^timeout ${name} (\\d+)s$`).exec(it)).find(Boolean) ?? [];
    return Number(value) * 1000;
  };
  assert.ok(timeout("server") > Math.max(...Object.values(deadlines), limits.keepAliveTimeoutMs));
  assert.ok(timeout("http-keep-alive") < limits.keepAliveTimeoutMs, "the balancer closes first");
  assert.ok(defaults.includes("timeout tunnel 1h"));
  assert.ok(defaults.includes("retry-on conn-failure"), "what was sent is not sent again");
});

test("HAProxy accepts its configuration", (t) => {
  const run = spawnSync("haproxy", ["-c", "-f", join(ROOT, "deploy/haproxy.cfg")], {
    encoding: "utf8",
  });
  if (run.error !== undefined) return t.skip("no haproxy on this machine");
  assert.equal(run.status, 0, run.stderr);
});

const MANIFESTS = readdirSync(join(ROOT, "deploy/kubernetes")).sort();
const manifest = (name: string): Shape => yaml(`deploy/kubernetes/${name}`);

test("Kubernetes manifests keep to the schemas of the API, without unknown fields", () => {
  assert.deepEqual(MANIFESTS, [
    "autoscaler.yaml",
    "configmap.yaml",
    "deployment.yaml",
    "disruption-budget.yaml",
    "ingress.yaml.example",
    "network-policy.yaml",
    "secret.yaml.example",
    "service.yaml",
  ]);
  for (const name of MANIFESTS) assert.deepEqual(manifestFaults(manifest(name)), [], name);
  const misspelt = manifest("deployment.yaml");
  misspelt.spec.template.spec.containers[0].livenesProbe = {};
  assert.deepEqual(manifestFaults(misspelt), [
    "apps/v1 Deployment.spec.template.spec.containers.0.livenesProbe is unknown",
  ]);
  misspelt.spec.template.spec.terminationGracePeriodSeconds = "80s";
  assert.match(manifestFaults(misspelt)[0] ?? "", /terminationGracePeriodSeconds/);
});

test("Kubernetes manifests belong together: selectors, ports, volumes, variables", () => {
  const { metadata, spec } = manifest("deployment.yaml");
  const { labels } = spec.template.metadata;
  const spread = spec.template.spec.topologySpreadConstraints;
  assert.deepEqual(
    spread.map(({ topologyKey }: Shape) => topologyKey),
    ["kubernetes.io/hostname", "topology.kubernetes.io/zone"],
  );
  for (const selector of [
    spec.selector.matchLabels,
    manifest("service.yaml").spec.selector,
    manifest("disruption-budget.yaml").spec.selector.matchLabels,
    manifest("network-policy.yaml").spec.podSelector.matchLabels,
    ...spread.map(({ labelSelector }: Shape) => labelSelector.matchLabels),
  ])
    assert.deepEqual(selector, labels);
  assert.deepEqual(manifest("autoscaler.yaml").spec.scaleTargetRef, {
    apiVersion: "apps/v1",
    kind: "Deployment",
    name: metadata.name,
  });
  const [container] = spec.template.spec.containers;
  assert.equal(container.ports[0].containerPort, nodeConfig().server.port);
  assert.equal(manifest("service.yaml").spec.ports[0].targetPort, container.ports[0].name);
  const secret = manifest("secret.yaml.example");
  const configMap = manifest("configmap.yaml");
  assert.equal(container.envFrom[0].secretRef.name, secret.metadata.name);
  const given = [
    ...Object.keys(secret.stringData),
    ...container.env.map(({ name }: Shape) => String(name)),
  ];
  assert.deepEqual(given.sort(), [...NEEDED].sort());
  assert.equal(spec.template.spec.volumes[0].configMap.name, configMap.metadata.name);
  assert.deepEqual(
    container.volumeMounts.map(({ name }: Shape) => name),
    spec.template.spec.volumes.map(({ name }: Shape) => name),
  );
  assert.equal(container.volumeMounts[0].subPath, "svc.yml");
  const { SVC_TRUSTED_PROXIES: _, ...trusted } = VALUES;
  const placeholder = container.env.find(({ name }: Shape) => name === "SVC_TRUSTED_PROXIES").value;
  const refused = load(NODE_FILE, { ...trusted, SVC_TRUSTED_PROXIES: placeholder });
  assert.ok(!refused.ok, "a node starts only after the placeholder is replaced");
  assert.match(formatFaults(refused.faults), /trusted_proxies/);
  assert.equal(
    configMap.data["svc.yml"],
    NODE_FILE.replace(/^ {2}expected_nodes: .*\n/m, ""),
    "configmap.yaml holds deploy/svc.yml, without a number of nodes that the autoscaler changes",
  );
});

test("a pod is asked what the service answers, and may finish its drain", () => {
  const { spec } = manifest("deployment.yaml").spec.template;
  const [container] = spec.containers;
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"]) {
    assertServed(container[probe].httpGet.path.split("?")[0]);
    assert.equal(container[probe].httpGet.port, container.ports[0].name);
  }
  assert.equal(container.readinessProbe.httpGet.path, "/api/ready?for=traffic");
  const [, waits] = container.lifecycle.preStop.exec.command;
  const { periodSeconds, failureThreshold } = container.readinessProbe;
  assert.ok(Number(waits) >= periodSeconds * failureThreshold);
  assert.ok(spec.terminationGracePeriodSeconds > Number(waits) + stopSeconds());
  assert.ok(spec.securityContext.runAsNonRoot && container.securityContext.readOnlyRootFilesystem);
});

test("the policy lets in the nodes' port alone, and out to names, PostgreSQL and public addresses", () => {
  const { spec } = manifest("network-policy.yaml");
  assert.deepEqual(spec.policyTypes, ["Ingress", "Egress"]);
  const [container] = manifest("deployment.yaml").spec.template.spec.containers;
  assert.deepEqual(
    spec.ingress.map(({ ports }: Shape) => ports),
    [[{ protocol: "TCP", port: container.ports[0].name }]],
  );
  for (const { from } of spec.ingress) assert.ok(from.length > 0, "nobody is let in by default");
  const [names, database, providers] = spec.egress;
  assert.deepEqual(new Set(names.ports.map(({ port }: Shape) => port)), new Set([53]));
  assert.equal(database.ports[0].port, Number(new URL(databaseUrl()).port));
  const excluded = new BlockList();
  for (const { ipBlock } of providers.to)
    for (const range of ipBlock.except) {
      const [address = "", bits] = range.split("/");
      excluded.addSubnet(address, Number(bits), isIP(address) === 6 ? "ipv6" : "ipv4");
    }
  for (const address of ["10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254"])
    assert.ok(excluded.check(address), address);
  for (const address of ["fd00::1", "fe80::1"]) assert.ok(excluded.check(address, "ipv6"), address);
});

test("the Ingress leads to the service, for the address that callers are told, and hides metrics", () => {
  const { metadata, spec } = manifest("ingress.yaml.example");
  const [container] = manifest("deployment.yaml").spec.template.spec.containers;
  const told = container.env.find(({ name }: Shape) => name === "SVC_PUBLIC_URL").value;
  assert.deepEqual(
    [`https://${spec.rules[0].host}`, spec.tls[0].hosts],
    [told, [spec.rules[0].host]],
  );
  const { backend } = spec.rules[0].http.paths[0];
  const service = manifest("service.yaml");
  assert.deepEqual(backend.service, {
    name: service.metadata.name,
    port: { name: service.spec.ports[0].name },
  });
  const { annotations } = metadata;
  const longest = Math.max(...Object.values(nodeConfig().deadlines)) / 1000;
  assert.ok(seconds(annotations["haproxy.org/timeout-server"]) > longest);
  const rule = annotations["haproxy.org/backend-config-snippet"].trim();
  assert.ok(read("deploy/haproxy.cfg").includes(rule), "as the balancer of Compose does");
});

const databaseUrl = (): string => manifest("secret.yaml.example").stringData.DATABASE_URL;

test("the address of PostgreSQL asks for TLS, by an authority that the pods are given", () => {
  const url = new URL(databaseUrl());
  assert.equal(url.searchParams.get("sslmode"), "verify-full");
  const { spec } = manifest("deployment.yaml").spec.template;
  const { mountPath } = spec.containers[0].volumeMounts.find(
    ({ name }: Shape) => name === "database-ca",
  );
  assert.equal(url.searchParams.get("sslrootcert"), `${mountPath}/ca.crt`);
  assert.ok(load(NODE_FILE, { ...VALUES, DATABASE_URL: databaseUrl() }).ok);
});

/** What PostgreSQL grants of itself, and how many of those are the superuser's. */
const DEFAULT_CONNECTIONS = 100;
const SUPERUSER_CONNECTIONS = 3;

test("a node is one process, and PostgreSQL has the connections of all nodes", () => {
  assert.equal(nodeConfig().server.workers, 1);
  const [, most] = /const MAX_CONNECTIONS = (\d+)/.exec(read("src/shared/store/postgres.ts")) ?? [];
  const perNode = Number(most) + 1;
  const { services } = yaml("deploy/compose.yml");
  const inCompose = Object.values<Shape>(services).filter(({ image }) => image === "svc").length;
  assert.ok(inCompose * perNode <= DEFAULT_CONNECTIONS - SUPERUSER_CONNECTIONS);
  const { maxReplicas } = manifest("autoscaler.yaml").spec;
  const { maxSurge } = manifest("deployment.yaml").spec.strategy.rollingUpdate;
  const needed = (maxReplicas + maxSurge) * perNode;
  const text = read("deploy/kubernetes/autoscaler.yaml");
  const [, asked] = /max_connections of\s+# (\d+) or more/.exec(text) ?? [];
  assert.ok(Number(asked) >= needed + SUPERUSER_CONNECTIONS, `${asked} for ${needed}`);
  const operations = read("docs/operations.md");
  assert.ok(operations.includes(`(${maxReplicas} + ${maxSurge}) × ${perNode} = ${needed}`));
  assert.ok(operations.includes(`so set ${asked};`));
});

/** The unit, with programs and folders that this machine has. */
function unitHere(t: { after(fn: () => void): void }): string {
  const folder = mkdtempSync(join(tmpdir(), "svc-unit-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "svc.service");
  writeFileSync(
    file,
    read("deploy/systemd/svc.service")
      .replaceAll("/usr/bin/node", process.execPath)
      .replaceAll("/opt/svc", ROOT),
  );
  return file;
}

/** Directives that the unit uses: none may be misspelt where no systemd judges it. */
const DIRECTIVES = new Set(
  (
    "Description Wants After StartLimitIntervalSec Type ExecStart ExecReload Environment EnvironmentFile Restart " +
    "RestartSec TimeoutStopSec KillMode LimitNOFILE MemoryMax DynamicUser StateDirectory " +
    "StateDirectoryMode CacheDirectory WorkingDirectory UMask CapabilityBoundingSet AmbientCapabilities " +
    "NoNewPrivileges ProtectSystem ProtectHome ProtectProc ProtectClock ProtectControlGroups " +
    "ProtectHostname ProtectKernelLogs ProtectKernelModules ProtectKernelTunables PrivateTmp " +
    "PrivateDevices PrivateUsers LockPersonality RestrictAddressFamilies RestrictNamespaces " +
    "RestrictRealtime RestrictSUIDSGID RemoveIPC SystemCallArchitectures SystemCallFilter " +
    "SystemCallErrorNumber WantedBy"
  ).split(" "),
);

/** Keys and values of a unit file, in order. */
function unitLines(): readonly (readonly [key: string, value: string])[] {
  return read("deploy/systemd/svc.service")
    .split("\n")
    .filter((line) => /^[A-Z]/.test(line))
    .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]);
}

test("systemd accepts the unit, and finds it well contained", (t) => {
  const file = unitHere(t);
  const verified = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
  if (verified.error !== undefined) return t.skip("no systemd on this machine");
  assert.deepEqual([verified.status, verified.stderr], [0, ""]);
  const rated = spawnSync(
    "systemd-analyze",
    ["security", "--offline=yes", "--no-pager", "--threshold=20", file],
    { encoding: "utf8" },
  );
  if (/unrecognized option/.test(rated.stderr)) return t.skip("an old systemd");
  assert.equal(rated.status, 0, rated.stdout.split("\n").at(-2));
});

test("the unit runs commands of svc, gives the drain its time, and names variables that exist", () => {
  const lines = unitLines();
  const values = (key: string): readonly string[] =>
    lines.filter(([name]) => name === key).map(([, value]) => value);
  assert.deepEqual(values("ExecStart"), [
    "/usr/bin/node /opt/svc/bin/svc.mjs serve --config /etc/svc/svc.yml",
  ]);
  assert.deepEqual(values("ExecReload"), [
    "/usr/bin/node /opt/svc/bin/svc.mjs check-config /etc/svc/svc.yml",
    "/bin/kill -HUP $MAINPID",
  ]);
  assert.ok(Number(values("TimeoutStopSec")[0]) > stopSeconds());
  const unit = /^\[Unit\]\n[^[]*/m.exec(read("deploy/systemd/svc.service"))?.[0] ?? "";
  assert.match(unit, /^StartLimitIntervalSec=0$/m, "it is never given up");
  const { resources } = manifest("deployment.yaml").spec.template.spec.containers[0];
  const { services } = yaml("deploy/compose.yml");
  assert.deepEqual(
    [values("MemoryMax"), resources.limits.memory, services.node1.mem_limit],
    [["1G"], "1Gi", "1g"],
    "a process may use as much everywhere",
  );
  assert.deepEqual(
    lines.filter(([key]) => !DIRECTIVES.has(key)),
    [],
  );
  const named = [...read("deploy/systemd/svc.env.example").matchAll(/^(?:# )?([A-Z_]+)=/gm)];
  const production = new Set([...KNOWN, ...variablesOf("svc.production.yml")]);
  for (const [, name] of named) assert.ok(production.has(name ?? ""), name);
  assert.deepEqual(
    [...variablesOf("svc.production.yml")].filter(
      (variable) => !named.some(([, name]) => name === variable),
    ),
    [],
  );
});

function variablesOf(path: string): ReadonlySet<string> {
  return new Set([...read(path).matchAll(/^[^#\n]*\$\{(\w+)\}/gm)].map(([, name]) => name ?? ""));
}

test("the guide puts the package where the unit starts it, and the unit may keep what it compiles", () => {
  const unpack =
    "npm pack && mkdir /opt/svc && tar -xzf svc-*.tgz -C /opt/svc --strip-components=1";
  assert.ok(read("docs/operations.md").includes(`\n${unpack}\n`));
  const lines = unitLines().map(([key, value]) => `${key}=${value}`);
  assert.ok(
    lines.includes("Environment=XDG_CACHE_HOME=%C") && lines.includes("CacheDirectory=svc"),
  );
});

test("every image that is built on or run can be named by its digest", () => {
  const dockerfile = read("Dockerfile");
  const [, base = ""] = /^ARG NODE_IMAGE=(\S+)$/m.exec(dockerfile) ?? [];
  const from = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image);
  assert.deepEqual(new Set(from), new Set([`\${NODE_IMAGE}`]));
  const { services } = yaml("deploy/compose.yml");
  const { NODE_IMAGE, SVC_COMMIT } = services.node1.build.args;
  assert.deepEqual([NODE_IMAGE, SVC_COMMIT], [`\${NODE_IMAGE:-${base}}`, `\${SVC_COMMIT:-}`]);
  const guide = read("docs/operations.md");
  for (const [service, variable] of [
    ["balancer", "HAPROXY_IMAGE"],
    ["postgres", "POSTGRES_IMAGE"],
  ]) {
    const [, name, tag] =
      /^\$\{(\w+):-([\w.-]+:[\w.-]+)\}$/.exec(services[service ?? ""].image) ?? [];
    assert.equal(name, variable);
    assert.ok(guide.includes(`${variable}=${tag}@$(digest ${tag})`), variable);
  }
  assert.ok(guide.includes(`NODE_IMAGE=${base}@$(digest ${base})`));
});

test("the image and its configuration say the same as the files to deploy with", () => {
  const dockerfile = read("Dockerfile");
  const result = load(read("svc.production.yml"), VALUES);
  if (!result.ok) assert.fail(formatFaults(result.faults));
  const { port } = result.config.server;
  assert.equal(port, nodeConfig().server.port);
  assert.ok(dockerfile.includes(`\nEXPOSE ${port}\n`) && dockerfile.includes(`PORT=${port}`));
  assert.ok(dockerfile.includes("\nUSER node\n") && dockerfile.includes("\nWORKDIR /app\n"));
  const [, path] = /PORT\}(\/[\w/]+)`/.exec(dockerfile) ?? [];
  assertServed(path ?? "");
});
