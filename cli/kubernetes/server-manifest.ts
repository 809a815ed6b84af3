import { stringify } from 'yaml'
import { clusterRules, deadlineRules, namespaceRules, spanningRules } from '../../gpu/launcher/kubernetes/role-rules.ts'

export interface ManifestOptions {
  namespace: string
  /** The image of infer; undefined: only what a server elsewhere needs. */
  image: string | undefined
  /** Size of the volume of the data directory, as Kubernetes writes it: `50Gi`. */
  storage: string
}

const name = 'infer'
const port = 8787
const user = 8787

/** The objects with which a server runs engines as pods of a namespace, and runs there itself if it has an image. Pure. */
export function manifestObjects({ namespace, image, storage }: ManifestOptions): object[] {
  const account = { kind: 'ServiceAccount', name, namespace }
  const clusterName = `${name}-${namespace}`
  const role = (kind: string, roleName: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind, name: roleName })
  const rbac = 'rbac.authorization.k8s.io/v1'
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name, namespace } },
    {
      apiVersion: rbac,
      kind: 'Role',
      metadata: { name, namespace },
      rules: [...namespaceRules, ...spanningRules, ...deadlineRules],
    },
    {
      apiVersion: rbac,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: role('Role', name),
      subjects: [account],
    },
    { apiVersion: rbac, kind: 'ClusterRole', metadata: { name: clusterName }, rules: clusterRules },
    {
      apiVersion: rbac,
      kind: 'ClusterRoleBinding',
      metadata: { name: clusterName },
      roleRef: role('ClusterRole', clusterName),
      subjects: [account],
    },
    ...(image === undefined ? [] : serverObjects(namespace, image, storage)),
  ]
}

function serverObjects(namespace: string, image: string, storage: string): object[] {
  const labels = { 'app.kubernetes.io/name': name }
  const configuration = {
    allowed_hosts: [name, `${name}.${namespace}`, `${name}.${namespace}.svc`],
    pools: { k8s: { kind: 'kubernetes', card_memory: '80GiB' } },
    models: [],
  }
  const container = {
    name,
    image,
    args: ['serve', '--listen', `0.0.0.0:${port}`, '--config', '/etc/infer/infer.yaml'],
    ports: [{ name: 'http', containerPort: port }],
    readinessProbe: { tcpSocket: { port } },
    resources: { requests: { cpu: '500m', memory: '512Mi' } },
    securityContext: { allowPrivilegeEscalation: false },
    volumeMounts: [
      { name: 'data', mountPath: '/var/lib/infer' },
      { name: 'configuration', mountPath: '/etc/infer' },
    ],
  }
  return [
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name, namespace },
      data: { 'infer.yaml': stringify(configuration) },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace },
      spec: { selector: labels, ports: [{ name: 'http', port, targetPort: 'http' }] },
    },
    {
      // Never two servers with one data directory at a time.
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name, namespace },
      spec: {
        serviceName: name,
        replicas: 1,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: {
            serviceAccountName: name,
            terminationGracePeriodSeconds: 90,
            securityContext: { runAsUser: user, runAsGroup: user, fsGroup: user, runAsNonRoot: true },
            containers: [container],
            volumes: [{ name: 'configuration', configMap: { name } }],
          },
        },
        volumeClaimTemplates: [
          {
            metadata: { name: 'data' },
            spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
          },
        ],
      },
    },
  ]
}

/** The objects as the text that `kubectl apply --filename -` reads. */
export const manifestText = (options: ManifestOptions): string =>
  manifestObjects(options)
    .map(object => stringify(object, { aliasDuplicateObjects: false }))
    .join('---\n')
