import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { parse } from 'yaml'
import { freePort } from '../../../../gpu/launcher/address.ts'
import { ApiRefusal, type ClusterApi } from '../../../../gpu/launcher/kubernetes/cluster-api.ts'
import { leaderWorkerSets } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'

const { group, kind, resource: plural } = leaderWorkerSets
const sideEffects = { sideEffects: 'None', admissionReviewVersions: ['v1'], failurePolicy: 'Fail' }
const ofPods = {
  objectSelector: { matchExpressions: [{ key: 'leaderworkerset.sigs.k8s.io/name', operator: 'Exists' }] },
}
const setsPath = `${group.replaceAll('.', '-')}-v1-leaderworkerset`

/**
 * Makes LeaderWorkerSets known to an API server: by the definition that their controller has, or, without one, with a schema that
 * allows everything.
 */
export async function createSetResource(api: ClusterApi, definition: string | undefined): Promise<void> {
  const signal = AbortSignal.timeout(60_000)
  const openAPIV3Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  const versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }]
  const names = { plural, singular: 'leaderworkerset', kind, listKind: `${kind}List` }
  const anything = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: { group, scope: 'Namespaced', names, versions },
  }
  const body = definition === undefined ? anything : (parse(readFileSync(definition, 'utf8')) as object)
  await api.request({ method: 'POST', path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', body }, signal)
  // First it is not known, and then not ready.
  while (!(await api.request({ path: `/apis/${group}/v1/${plural}` }, signal).catch(() => undefined))) {
    signal.throwIfAborted()
    await pause(100)
  }
}

/**
 * Prepares the controller of LeaderWorkerSet: its configuration, and its webhooks, which it serves on loopback with the certificate
 * of the API server. Resolves with its arguments.
 */
export async function prepareSetController(api: ClusterApi, folder: string): Promise<string[]> {
  const signal = AbortSignal.timeout(20_000)
  const certDir = join(folder, 'webhooks')
  mkdirSync(certDir, { recursive: true })
  for (const [from, to] of [
    ['crt', 'tls.crt'],
    ['key', 'tls.key'],
  ] as const)
    copyFileSync(join(folder, `certificates/apiserver.${from}`), join(certDir, to))
  const [port, health, metrics] = (await Promise.all([1, 2, 3].map(freePort))) as [number, number, number]
  const configuration = {
    apiVersion: 'config.lws.x-k8s.io/v1alpha1',
    kind: 'Configuration',
    leaderElection: { leaderElect: false },
    internalCertManagement: { enable: false },
    webhook: { port, host: '127.0.0.1', certDir },
    health: { healthProbeBindAddress: `127.0.0.1:${health}` },
    metrics: { bindAddress: `127.0.0.1:${metrics}` },
  }
  const path = join(folder, 'set-controller.json')
  writeFileSync(path, JSON.stringify(configuration))
  const caBundle = readFileSync(join(certDir, 'tls.crt')).toString('base64')
  const hook = (name: string, at: string, rules: object, more: object = {}) => ({
    name,
    clientConfig: { url: `https://127.0.0.1:${port}${at}`, caBundle },
    rules: [{ apiVersions: ['v1'], ...rules }],
    ...sideEffects,
    ...more,
  })
  const sets = { apiGroups: [group], resources: [plural], operations: ['CREATE', 'UPDATE'] }
  const pods = { apiGroups: [''], resources: ['pods'] }
  for (const [type, webhooks] of [
    [
      'Mutating',
      [
        hook('mleaderworkerset.kb.io', `/mutate-${setsPath}`, sets),
        hook('mpod.kb.io', '/mutate--v1-pod', { ...pods, operations: ['CREATE'] }, ofPods),
      ],
    ],
    [
      'Validating',
      [
        hook('vleaderworkerset.kb.io', `/validate-${setsPath}`, sets),
        hook('vpod.kb.io', '/validate--v1-pod', { ...pods, operations: ['CREATE', 'UPDATE'] }, ofPods),
      ],
    ],
  ] as const) {
    const named = { metadata: { name: `lws-${type.toLowerCase()}-webhook-configuration` } }
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: `${type}WebhookConfiguration`,
      ...named,
      webhooks,
    }
    const at = `/apis/admissionregistration.k8s.io/v1/${type.toLowerCase()}webhookconfigurations`
    await api.request({ method: 'POST', path: at, body }, signal)
  }
  return [`--config=${path}`]
}

/** Resolves when the webhooks of the controller of LeaderWorkerSet answer. */
export async function untilSetsAreAdmitted(api: ClusterApi): Promise<void> {
  const path = `/apis/${group}/v1/namespaces/${api.namespace}/${plural}`
  const containers = [{ name: 'a', image: 'a' }]
  const body = {
    apiVersion: `${group}/v1`,
    kind,
    metadata: { name: 'trial' },
    spec: { replicas: 1, leaderWorkerTemplate: { size: 2, workerTemplate: { spec: { containers } } } },
  }
  for (const signal = AbortSignal.timeout(60_000); ; await pause(200))
    try {
      return void (await api.request({ method: 'POST', path, query: { dryRun: 'All' }, body }, signal))
    } catch (thrown) {
      if (signal.aborted || !(thrown instanceof ApiRefusal) || thrown.status < 500) throw thrown
    }
}
