import { expect, test } from 'vitest'
import { type KubernetesPool, PoolSettings } from '../../../../core/models/pools.ts'
import { comparePods, type HeldPod, type PodRecord } from '../../../../gpu/launcher/kubernetes/listed-pods.ts'
import {
  cardsOf,
  devicesOf,
  type NodeObject,
  requestedByOthers,
} from '../../../../gpu/launcher/kubernetes/node-cards.ts'
import { launchStateOf } from '../../../../gpu/launcher/kubernetes/pod-launch-state.ts'
import { type PodPlan, podManifest, podName, secretManifest } from '../../../../gpu/launcher/kubernetes/pod-manifest.ts'
import { type PodState, podStateIn, statusOf } from '../../../../gpu/launcher/kubernetes/pod-state.ts'
import { refusalOf } from '../../../../gpu/launcher/kubernetes/refusal.ts'
import { launchOptions } from '../_launch.ts'

const settings = (more: object = {}) =>
  PoolSettings.parse({ kind: 'kubernetes', card_memory: '80GiB', ...more }) as KubernetesPool

const plan = (of: Partial<PodPlan> = {}, more: object = {}): PodPlan => ({
  settings: settings(more),
  serverId: 'srv.k8s',
  namespace: 'inference',
  options: {
    ...launchOptions('wkr_01AB-1', []),
    modelId: 'm',
    argv: ['vllm', 'serve', '/models/$(HOME)', '--port', '{port}'],
    channel: 'port',
    env: { VLLM_API_KEY: 'the-key-of-it' },
  },
  needs: { nodes: 1, cards: 2, cpus: 7.5, memoryBytes: 3 * 2 ** 30 + 1, maxMs: 90_000 },
  image: { name: 'vllm/vllm-openai:v1', program: '/opt/vllm' },
  ports: { wrapper: 20_001, engine: 20_002 },
  key: { certificate: 'CERT', key: 'PRIVATE' },
  wrapper: 'import ssl',
  ...of,
})

test('a pod has what the pool and the launch say', () => {
  const pod = podManifest(
    plan(
      {},
      {
        node_selector: { zone: 'a' },
        tolerations: [{ key: 'nvidia.com/gpu' }],
        service_account: 'engines',
        image_pull_secrets: ['registry'],
        volumes: [{ claim: 'models', mount_path: '/models' }],
      },
    ),
  )
  expect(pod).toMatchObject({
    metadata: {
      name: 'infer-wkr-01ab-1',
      namespace: 'inference',
      labels: { 'infer/server': 'srv.k8s', 'infer/launch': 'wkr_01AB-1' },
    },
    spec: {
      restartPolicy: 'Never',
      automountServiceAccountToken: false,
      activeDeadlineSeconds: 90,
      serviceAccountName: 'engines',
      imagePullSecrets: [{ name: 'registry' }],
      nodeSelector: { zone: 'a' },
      tolerations: [
        { key: 'nvidia.com/gpu', operator: 'Exists' },
        { tolerationSeconds: 60 },
        { tolerationSeconds: 60 },
      ],
      containers: [
        { name: 'wrapper', image: 'python:3-alpine', ports: [{ containerPort: 20_001 }] },
        {
          name: 'engine',
          image: 'vllm/vllm-openai:v1',
          command: ['/opt/vllm', 'serve', '/models/$$(HOME)', '--port', '20002'],
          resources: {
            requests: { cpu: '8', memory: '3073Mi', 'nvidia.com/gpu': '2' },
            limits: { 'nvidia.com/gpu': '2' },
          },
          livenessProbe: { tcpSocket: { port: 20_001 } },
        },
      ],
    },
  })
  const volume = { name: 'volume-0', persistentVolumeClaim: { claimName: 'models', readOnly: true } }
  expect((pod as { spec: { volumes: object[] } }).spec.volumes).toContainEqual(volume)
})

test('keys are in the secret, and nowhere in the pod', () => {
  const text = JSON.stringify(podManifest(plan()))
  for (const secret of ['the-key-of-it', 'PRIVATE', 'CERT']) expect(text).not.toContain(secret)
  expect(text).toContain('"secretKeyRef":{"name":"infer-wkr-01ab-1","key":"env.VLLM_API_KEY"}')
  expect(secretManifest(plan())).toMatchObject({
    metadata: { name: podName('wkr_01AB-1') },
    stringData: {
      'key.pem': 'PRIVATE',
      'env.VLLM_API_KEY': 'the-key-of-it',
      'settings.json': JSON.stringify({ port: 20_001, target: 20_002, orphanSeconds: 900 }),
    },
  })
})

test('an engine without a card asks for none, and sees none', () => {
  const bare = plan({ needs: { nodes: 1, cards: 0, cpus: 0, memoryBytes: 0, maxMs: null } })
  const [, engine] = (podManifest(bare) as { spec: { containers: [object, object] } }).spec.containers
  expect(engine).toMatchObject({ resources: { requests: { cpu: '1' }, limits: {} } })
  expect(secretManifest(bare)).toMatchObject({ stringData: { 'env.NVIDIA_VISIBLE_DEVICES': 'void' } })
})

const object = (status: object, more: object = {}, spec: object = { nodeName: 'n1' }) => ({
  metadata: { name: 'p', uid: 'u1', labels: { 'infer/server': 's', 'infer/launch': 'a-1' }, ...more },
  spec: {
    containers: [
      { name: 'engine', image: 'e:1' },
      { name: 'wrapper', image: 'w:1' },
    ],
    ...spec,
  },
  status,
})
const of = (engine: object, wrapper: object = { running: {} }) => ({
  containerStatuses: [
    { name: 'engine', state: engine },
    { name: 'wrapper', state: wrapper },
  ],
})
const running = { running: {} }
const condition = (type: string, status: string, reason: string, message = '') => ({
  conditions: [{ type, status, reason, message }],
})
const deleting = { deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 }

test.each<[name: string, pod: object, state: string, status: string | null, reason: RegExp | null]>([
  ['new', object({}, {}, {}), 'pending', null, /^It waits for Kubernetes\.$/],
  [
    'unschedulable',
    object(condition('PodScheduled', 'False', 'Unschedulable', '0/3 nodes are available.'), {}, {}),
    'pending',
    null,
    /^It waits for Kubernetes: 0\/3 nodes are available \(Unschedulable\)\.$/,
  ],
  ['being prepared', object({ phase: 'Pending' }), 'pending', null, /being prepared on the node 'n1'/],
  [
    'an image that is not there',
    object(of({ waiting: { reason: 'ImagePullBackOff', message: 'not found' } })),
    'pending',
    null,
    /^The image 'e:1' of its pod cannot be pulled: not found \(ImagePullBackOff\)\.$/,
  ],
  [
    "the wrapper's image",
    object(of({ waiting: { reason: 'PodInitializing' } }, { waiting: { reason: 'ErrImagePull' } })),
    'pending',
    null,
    /^The image 'w:1' of its pod cannot be pulled \(ErrImagePull\)/,
  ],
  [
    'a secret that is missing',
    object(of({ waiting: { reason: 'CreateContainerConfigError', message: 'secret "x" not found' } })),
    'pending',
    null,
    /^Its container cannot be started: secret "x" not found/,
  ],
  ['running', object({ phase: 'Running', ...of(running) }), 'running', null, null],
  ['without its wrapper', object(of(running, { terminated: { exitCode: 1 } })), 'ending', null, /has ended/],
  ['being deleted', object({ phase: 'Running', ...of(running) }, deleting), 'ending', null, null],
  ['ended', object(of({ terminated: { exitCode: 3, reason: 'Error' } })), 'gone', '3', /exited with status 3/],
  ['killed', object(of({ terminated: { exitCode: 137 } })), 'gone', 'SIGKILL', /ended by SIGKILL/],
  [
    'out of memory',
    object(of({ terminated: { exitCode: 137, reason: 'OOMKilled' } })),
    'gone',
    'SIGKILL',
    /main memory/,
  ],
  [
    'a program that is not in its image',
    object(of({ terminated: { exitCode: 128, reason: 'StartError', message: 'exec: "vllm": not found' } })),
    'gone',
    '128',
    /^Its container could not be started: exec: "vllm": not found\.$/,
  ],
  [
    'evicted',
    object({ phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' }),
    'gone',
    null,
    /^Kubernetes has evicted its pod: The node was low on resource: memory\.$/,
  ],
  [
    'preempted',
    object({ ...condition('DisruptionTarget', 'True', 'PreemptionByScheduler'), ...of(running) }, deleting),
    'ending',
    null,
    /to a pod of higher priority/,
  ],
  [
    'on a node that does not answer',
    object({ ...condition('DisruptionTarget', 'True', 'DeletionByTaintManager'), ...of(running) }, deleting),
    'ending',
    null,
    /^Its node 'n1' does not answer/,
  ],
  ['of too much time', object({ phase: 'Failed', reason: 'DeadlineExceeded' }), 'gone', null, /time limit/],
])('a pod that is %s', (_name, pod, state, status, reason) => {
  const found = launchStateOf(podStateIn(pod, 's')!)
  expect(found).toMatchObject({ state, status })
  if (reason) expect(found.reason).toMatch(reason)
  else expect(found.reason).toBeNull()
})

test('pods of others are none', () => {
  expect(podStateIn(object({}), 'another')).toBeUndefined()
  expect(podStateIn({ metadata: { name: 'p', uid: 'u' } }, 's')).toBeUndefined()
})

test.each([
  [0, '0'],
  [3, '3'],
  [137, 'SIGKILL'],
  [139, 'SIGSEGV'],
  [255, '255'],
  [null, null],
])('exit code %s is %s', (code, status) => expect(statusOf(code)).toBe(status))

const pod = (more: Partial<PodState> = {}): PodState => ({
  ...podStateIn(object({ phase: 'Running', ...of(running) }), 's')!,
  ...more,
})
const held = (record: Partial<PodRecord> = {}, more: Partial<HeldPod> = {}): ReadonlyMap<string, HeldPod> =>
  new Map([
    [
      'a-1',
      {
        record: { uid: 'u1', end: null, ...record } as PodRecord,
        pod: undefined,
        expectedFrom: 2,
        isEnding: false,
        deletingSince: null,
        event: undefined,
        isCleaning: false,
        withdrawal: null,
        ...more,
      },
    ],
  ])
const at = (list: number | null, now = 0) => ({ list, now, lostMs: 1_000 })

test.each<
  [name: string, held: ReadonlyMap<string, HeldPod>, pods: PodState[], how: ReturnType<typeof at>, result: object]
>([
  ['is found by its uid', held(), [pod()], at(3), { found: ['a-1'], ended: [], surplus: [] }],
  [
    'is found by its launch where its uid is not known',
    held({ uid: null }),
    [pod()],
    at(3),
    { found: ['a-1'], ended: [], surplus: [] },
  ],
  [
    'with another uid is not its pod',
    held(),
    [pod({ uid: 'u2' })],
    at(null),
    { found: [], ended: [], surplus: ['u2'] },
  ],
  ['of no launch is surplus', new Map(), [pod()], at(3), { found: [], ended: [], surplus: ['u1'] }],
  [
    'of no launch that ends already is left alone',
    new Map(),
    [pod({ deletingIn: 5 })],
    at(3),
    { found: [], ended: [], surplus: [] },
  ],
  ['may be missing in a list that has begun before', held(), [], at(1), { found: [], ended: [], surplus: [] }],
  ['may be missing where only changes are told', held(), [], at(null), { found: [], ended: [], surplus: [] }],
  ['is gone if a later list lacks it', held(), [], at(2), { found: [], ended: ['Its pod was deleted.'], surplus: [] }],
  [
    'that was never created is gone',
    held({ uid: null }),
    [],
    at(2),
    { found: [], ended: ['It was not started.'], surplus: [] },
  ],
  [
    'that is removed is gone',
    held(),
    [pod({ isRemoved: true })],
    at(null),
    { found: ['a-1'], ended: ['Its pod was deleted.'], surplus: [] },
  ],
  [
    'of a launch that has ended is surplus',
    held({ end: { status: null, reason: null, at: 0 } }),
    [pod()],
    at(3),
    { found: [], ended: [], surplus: ['u1'] },
  ],
  [
    'whose removal has begun is not',
    held({ end: { status: null, reason: null, at: 0 } }, { isCleaning: true }),
    [pod()],
    at(3),
    { found: [], ended: [], surplus: [] },
  ],
  [
    'that is to end has its time',
    held({}, { deletingSince: 0 }),
    [pod({ deletingIn: 5 })],
    at(null, 5_999),
    { found: ['a-1'], ended: [], surplus: [] },
  ],
  [
    'that stays after that is lost with its node',
    held({}, { deletingSince: 0 }),
    [pod({ deletingIn: 5 })],
    at(null, 6_001),
    { found: ['a-1'], ended: ["Its node 'n1' does not answer."], surplus: [] },
  ],
])('a pod %s', (_name, launches, pods, how, result) => {
  const { found, ended, surplus } = comparePods(launches, pods, how)
  const shown = {
    found: [...found.keys()],
    ended: ended.map(one => one.end.reason),
    surplus: surplus.map(one => one.uid),
  }
  expect(shown).toEqual(result)
})

const node = (more: { spec?: object; status?: object } = {}): NodeObject => ({
  metadata: { name: 'n1' },
  spec: { ...more.spec },
  status: { allocatable: { 'nvidia.com/gpu': '8' }, conditions: [{ type: 'Ready', status: 'True' }], ...more.status },
})
const taint = (key: string, effect = 'NoSchedule', value?: string) => ({ spec: { taints: [{ key, effect, value }] } })
const tolerant = { tolerations: [{ key: 'gpu', operator: 'Equal', value: 'yes' }] }

test.each<[name: string, node: NodeObject, settings: object, cards: number]>([
  ['that is ready', node(), {}, 8],
  ['that is cordoned', node({ spec: { unschedulable: true } }), {}, 0],
  ['that is not ready', node({ status: { conditions: [{ type: 'Ready', status: 'Unknown' }] } }), {}, 0],
  ['without GPUs', node({ status: { allocatable: { cpu: '8' } } }), {}, 0],
  ['with GPUs of another maker', node(), { resource: 'amd.com/gpu' }, 0],
  ['with a taint', node(taint('gpu')), {}, 0],
  ['with a taint that pods prefer to avoid', node(taint('gpu', 'PreferNoSchedule')), {}, 8],
  ['with a taint that the pool tolerates', node(taint('gpu', 'NoSchedule', 'yes')), tolerant, 8],
  ['with a taint of another value', node(taint('gpu', 'NoSchedule', 'no')), tolerant, 0],
  ['where the pool tolerates every taint', node(taint('gpu')), { tolerations: [{}] }, 8],
])('a node %s has %s', (_name, of_, more, cards) => expect(cardsOf(of_, settings(more))).toBe(cards))

test('GPUs that pods of others ask for are not there', () => {
  const asking = (server: string, count: string) => ({
    metadata: { labels: { 'infer/server': server } },
    spec: { containers: [{ resources: { requests: { 'nvidia.com/gpu': count } } }, {}] },
  })
  expect(requestedByOthers([asking('own', '1'), asking('other', '2'), { spec: {} }], 'nvidia.com/gpu', 'own')).toBe(2)
  expect(devicesOf({ n1: 1, n2: -1 }, settings())).toMatchObject([{ id: 'n1/gpu0', totalBytes: 80 * 2 ** 30 }])
})

const launch = plan().options
const known = { nodes: 1, cards: 1, cpus: 1, memoryBytes: 0, maxMs: null, image: { name: 'i' } }
const read = { ...launch.sandbox, read: ['/models/$(HOME)'] }

test.each<[name: string, of: object, volumes: object[], refusal: RegExp | undefined]>([
  ['with an image', { needs: known }, [], undefined],
  [
    'without an image',
    { needs: { ...known, image: undefined } },
    [],
    /not known which image has the program 'vllm' that runs 'm'/,
  ],
  ['that is part of infer', { argv: ['/bin/infer', 'engine', 'demo'], needs: known }, [], /is part of infer/],
  ['that writes files', { argv: ['x', '{outputs}'], needs: known }, [], undefined],
  [
    'that must be in a sandbox',
    { sandbox: { ...read, level: 'strict', required: true }, needs: known },
    [],
    /sandbox 'strict'/,
  ],
  ['whose files pods do not have', { sandbox: read, needs: known }, [], /do not have \/models\/\$\(HOME\)/],
  ['whose files are in a volume', { sandbox: read, needs: known }, [{ claim: 'm', mount_path: '/models' }], undefined],
])('an engine %s', (_name, more, volumes, refusal) => {
  const options = { pool: 'k8s', volumes: settings({ volumes }).volumes, self: ['/bin/infer'] }
  const found = refusalOf({ ...launch, ...more }, options)
  if (refusal) expect(found).toMatch(refusal)
  else expect(found).toBeUndefined()
})
