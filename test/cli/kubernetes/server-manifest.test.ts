import { expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { manifestObjects, manifestText } from '../../../cli/kubernetes/server-manifest.ts'
import { parseConfig } from '../../../core/models/config.ts'

interface Shown {
  kind: string
  metadata: { name: string; namespace?: string }
  data?: Record<string, string>
  spec?: { template?: { spec: { serviceAccountName: string; containers: { image: string }[] } } }
}
const options = { namespace: 'team', image: 'registry/infer:1', storage: '20Gi' }

test('a manifest has a server with its volume, or only its rights', () => {
  const documents = parseAllDocuments(manifestText(options)).map(one => one.toJS() as Shown)
  expect(documents).toEqual(manifestObjects(options))
  const rights = ['ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding']
  expect(documents.map(({ kind }) => kind)).toEqual([...rights, 'ConfigMap', 'Service', 'StatefulSet'])
  const { serviceAccountName, containers } = documents.at(-1)!.spec!.template!.spec
  expect([serviceAccountName, containers[0]!.image]).toEqual(['infer', 'registry/infer:1'])
  for (const { kind, metadata } of documents) if (!kind.startsWith('Cluster')) expect(metadata.namespace).toBe('team')
  const only = parseAllDocuments(manifestText({ ...options, image: undefined })).map(one => one.toJS() as Shown)
  expect(only.map(({ kind }) => kind)).toEqual(rights)
})

test('the server in a manifest accepts its configuration', () => {
  const map = manifestObjects(options).find(one => (one as Shown).kind === 'ConfigMap') as Shown
  expect(parseConfig(map.data!['infer.yaml']!, 'infer.yaml').pools).toMatchObject({ k8s: { kind: 'kubernetes' } })
  expect(parse(map.data!['infer.yaml']!)).toMatchObject({ allowed_hosts: ['infer', 'infer.team', 'infer.team.svc'] })
})

test('no secret may be read, and nothing outside of the namespace be changed', () => {
  const text = JSON.stringify(manifestObjects(options))
  expect(text).toContain('{"apiGroups":[""],"resources":["secrets"],"verbs":["create","patch","delete"]}')
  expect(text).toContain('{"apiGroups":[""],"resources":["nodes","pods"],"verbs":["list"]}')
})
