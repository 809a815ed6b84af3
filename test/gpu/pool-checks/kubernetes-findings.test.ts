import { expect, test } from 'vitest'
import { type KubernetesPool, PoolSettings } from '../../../core/models/pools.ts'
import { ApiRefusal } from '../../../gpu/launcher/kubernetes/cluster-api.ts'
import type { NodeObject } from '../../../gpu/launcher/kubernetes/node-cards.ts'
import {
  callFinding,
  clusterRightsFinding,
  imagesFinding,
  nodesFinding,
  podFinding,
  trialPodFindings,
} from '../../../gpu/pool-checks/kubernetes-findings.ts'

const pool = (changes: object = {}) =>
  PoolSettings.parse({ kind: 'kubernetes', card_memory: '80GiB', ...changes }) as KubernetesPool

test.each<[thrown: Error, name: string, detail: RegExp, advice: RegExp]>([
  [new ApiRefusal(401, 'Unauthorized', 'Unauthorized'), 'credentials', /does not accept them: Unauthorized/, /token/],
  [new ApiRefusal(500, '', 'etcd is away'), 'cluster', /fails: etcd is away/, /readyz/],
  [new Error("The program 'aws' gives no credentials: x."), 'credentials', /^The program 'aws' gives/, /by hand/],
  [
    Object.assign(new Error('self-signed certificate'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }),
    'cluster',
    /not trusted: self-signed/,
    /certificate-authority-data/,
  ],
  [
    Object.assign(new Error('altnames'), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' }),
    'cluster',
    /not trusted: altnames/,
    /tls-server-name/,
  ],
  [Object.assign(new Error('timeout'), { code: 'UND_ERR_CONNECT_TIMEOUT' }), 'cluster', /answer: timeout/, /'server'/],
])('a call that has failed: %s', (thrown, name, detail, advice) => {
  const found = callFinding(thrown, 'https://k')
  expect(found).toMatchObject({ name, state: 'broken' })
  expect(found.detail).toMatch(detail)
  expect(found.advice).toMatch(advice)
})

test.each<[missing: string[], cards: number | undefined, state: string, detail: RegExp]>([
  [[], undefined, 'fine', /may list nodes and pods/],
  [['list pods'], undefined, 'warning', /count as free/],
  [['list nodes'], 3, 'warning', /has 3 GPUs, by 'max_cards'/],
  [['list nodes', 'list pods'], undefined, 'broken', /may not list nodes, list pods .* no 'max_cards'/],
])('rights in the cluster without %j and %s GPUs', (missing, cards, state, detail) => {
  const found = clusterRightsFinding(missing, 'n', cards)
  expect(found.state).toBe(state)
  expect(found.detail).toMatch(detail)
})

const node = (name: string, count: number, spec: object = {}): NodeObject => ({
  metadata: { name },
  spec,
  status: { allocatable: { 'nvidia.com/gpu': String(count) }, conditions: [{ type: 'Ready', status: 'True' }] },
})

test.each<[name: string, nodes: NodeObject[], changes: object, needed: number, state: string, detail: RegExp]>([
  ['enough', [node('a', 4), node('b', 8), node('c', 0)], {}, 8, 'fine', /^12 of 'nvidia.com\/gpu' on 2 nodes, 5 free$/],
  ['too few', [node('a', 4)], {}, 5, 'broken', /asks for 5, and no node has more than 4/],
  ['one cordoned', [node('a', 4), node('b', 4, { unschedulable: true })], {}, 1, 'warning', /take no pods .*: b$/],
  ['none with the labels', [], { node_selector: { a: 'b' } }, 1, 'broken', /no node that 'node_selector' selects has/],
  ['a taint', [node('a', 4, { taints: [{ key: 'x', effect: 'NoSchedule' }] })], {}, 1, 'broken', /of the pool: a$/],
])('nodes: %s', (_name, nodes, changes, needed, state, detail) => {
  const found = nodesFinding(nodes, pool(changes), { needed, free: 5 })
  expect(found.state).toBe(state)
  expect(found.detail).toMatch(detail)
})

test.each<[status: number, words: string, advice: RegExp]>([
  [404, 'namespaces "n" not found', /kubectl create namespace n$/],
  [403, 'exceeded quota: gpus', /kubectl describe quota --namespace n$/],
  [403, 'violates PodSecurity "restricted:latest"', /pod security level/],
  [403, 'service account n/engines was not found', /'service_account'/],
])('a pod that is refused: %d %s', (status, words, advice) => {
  const found = podFinding(new ApiRefusal(status, '', words), 2, 'n')
  expect(found.detail).toBe(`Kubernetes refuses a pod with 2 GPUs: ${words}`)
  expect(found.advice).toMatch(advice)
})

test('images and their programs', () => {
  const known = { id: 'a', image: { name: 'vllm/vllm-openai:v1', program: 'vllm' } }
  expect(imagesFinding([known, known]).detail).toBe('vllm/vllm-openai:v1 (vllm)')
  expect(imagesFinding([known, { id: 'b', image: undefined }])).toMatchObject({
    state: 'broken',
    detail: "not known for 'b'",
  })
})

test('what a trial pod has shown', () => {
  const shown = (trial: Parameters<typeof trialPodFindings>[0]) =>
    trialPodFindings(trial).map(({ state, detail }) => `${state} ${detail}`)
  const reason = "It runs on 'n1', and cannot be reached from here."
  expect(shown({ state: 'waiting', reason, hasStarted: true })).toEqual([`broken ${reason.slice(0, -1)}`])
  expect(shown({ state: 'waiting', reason: 'It waits.', hasStarted: false })).toEqual([
    'warning it has not started in time, so no node was tested. It waits.',
  ])
  expect(shown({ state: 'failed', reason: 'Kubernetes has refused it.' })).toEqual(['broken Kubernetes has refused it'])
  const body = JSON.stringify({ python: '3.13.1', missing: ['/models/a'] })
  expect(shown({ state: 'answered', node: 'n1', body })).toEqual([
    'fine a pod on n1 has answered over TLS, with Python 3.13.1, and was deleted',
    'broken pods do not have /models/a',
  ])
})
