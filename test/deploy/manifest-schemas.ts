// Checks Kubernetes manifests against the schemas of the API, strictly. The published schemas let
// unknown fields pass; here, a field that no schema looks at is a fault.
import { validate as deployment } from "kubernetes-models/_schemas/IoK8sApiAppsV1Deployment";
import { validate as autoscaler } from "kubernetes-models/_schemas/IoK8sApiAutoscalingV2HorizontalPodAutoscaler";
import { validate as configMap } from "kubernetes-models/_schemas/IoK8sApiCoreV1ConfigMap";
import { validate as secret } from "kubernetes-models/_schemas/IoK8sApiCoreV1Secret";
import { validate as service } from "kubernetes-models/_schemas/IoK8sApiCoreV1Service";
import { validate as ingress } from "kubernetes-models/_schemas/IoK8sApiNetworkingV1Ingress";
import { validate as networkPolicy } from "kubernetes-models/_schemas/IoK8sApiNetworkingV1NetworkPolicy";
import { validate as disruptionBudget } from "kubernetes-models/_schemas/IoK8sApiPolicyV1PodDisruptionBudget";

interface Schema {
  (data: unknown): boolean;
  errors?: unknown;
}

const SCHEMAS: Readonly<Record<string, Schema>> = {
  "apps/v1 Deployment": deployment,
  "autoscaling/v2 HorizontalPodAutoscaler": autoscaler,
  "networking.k8s.io/v1 Ingress": ingress,
  "networking.k8s.io/v1 NetworkPolicy": networkPolicy,
  "policy/v1 PodDisruptionBudget": disruptionBudget,
  "v1 ConfigMap": configMap,
  "v1 Secret": secret,
  "v1 Service": service,
};

/** Everything that is wrong with a manifest; empty = nothing. */
export function manifestFaults(manifest: Readonly<Record<string, unknown>>): readonly string[] {
  const kind = `${manifest["apiVersion"]} ${manifest["kind"]}`;
  const schema = SCHEMAS[kind];
  if (schema === undefined) return [`no schema for ${kind}`];
  const read = new Map<object, Set<string>>();
  if (!schema(watched(manifest, read))) return [JSON.stringify(schema.errors)];
  return unread(manifest, kind, read);
}

/** The value, with a record of the fields that are read of each object in it. */
function watched(value: unknown, read: Map<object, Set<string>>): unknown {
  if (typeof value !== "object" || value === null) return value;
  const fields = read.get(value) ?? new Set<string>();
  read.set(value, fields);
  return new Proxy(value, {
    get(target, key) {
      if (typeof key === "string") fields.add(key);
      return watched(Reflect.get(target, key), read);
    },
  });
}

function unread(
  value: unknown,
  path: string,
  read: ReadonlyMap<object, ReadonlySet<string>>,
): readonly string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([field, inner]) =>
    read.get(value)?.has(field) === true
      ? unread(inner, `${path}.${field}`, read)
      : [`${path}.${field} is unknown`],
  );
}
