import { describe, expect, test } from 'vitest'
import { parseConfig } from '../../../core/models/config.ts'
import { poolsOf } from '../../../core/models/pools.ts'

const pools = 'pools: { lab: { kind: slurm, card_memory: 80GiB }, box2: { kind: ssh, host: user@box } }'
const kubernetes = (more: string) => `pools: { k8s: { kind: kubernetes, card_memory: 80GiB, ${more} } }`
const model = (more: string) => `${pools}\nmodels: [{ id: a, source: /x.gguf, ${more} }]`

test('a pool has the settings of its kind, with sizes and durations', () => {
  const text = `pools:
  lab: { kind: slurm, partition: gpu, time_limit: 8h, card_memory: 80 GiB, max_cards: 8, extra: [--exclude=n7] }
  box2: { kind: ssh, host: user@box, port: 2222 }`
  expect(parseConfig(text, 'f').pools).toEqual({
    lab: {
      kind: 'slurm',
      partition: 'gpu',
      gres: 'gpu',
      time_limit: 28_800_000,
      extra: ['--exclude=n7'],
      card_memory: 80 * 2 ** 30,
      max_cards: 8,
      orphan_grace: 900_000,
    },
    box2: { kind: 'ssh', host: 'user@box', port: 2222, orphan_grace: 900_000 },
  })
})

test('a pool of Kubernetes has volumes, tolerations and images', () => {
  const text = `pools:
  k8s:
    kind: kubernetes
    card_memory: 80GiB
    images: { vllm: registry.example.com/vllm:1 }
    tolerations: [{ key: nvidia.com/gpu }]
    volumes: [{ claim: models, mount_path: /models }]`
  expect(parseConfig(text, 'f').pools).toEqual({
    k8s: {
      kind: 'kubernetes',
      card_memory: 80 * 2 ** 30,
      resource: 'nvidia.com/gpu',
      node_selector: {},
      tolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
      images: { vllm: 'registry.example.com/vllm:1' },
      image_pull_secrets: [],
      wrapper_image: 'python:3-alpine',
      volumes: [{ claim: 'models', mount_path: '/models', read_only: true }],
      orphan_grace: 900_000,
    },
  })
})

test('a model has its pools in order, with limits; without the key it has this machine', () => {
  const parsed = parseConfig(model('pools: [local, { pool: lab, max_engines: 2, time_limit: 4h }]'), 'f').models[0]!
  expect(poolsOf(parsed)).toEqual([
    { pool: 'local' },
    { pool: 'lab', maxEngines: 2, maxCards: undefined, timeLimit: 14_400_000, image: undefined },
  ])
  const [without] = parseConfig('models: [{ id: a, source: /x.gguf }]', 'f').models
  expect(without).not.toHaveProperty('pools')
  expect(poolsOf(without!)).toEqual([{ pool: 'local' }])
})

describe('errors name the place and what to do', () => {
  test.each<[text: string, message: RegExp]>([
    ['pools: { lab: { kind: pbs } }', /^f:1:17: 'pools.lab.kind' has an unknown value: "pbs"/],
    ['pools: { lab: {} }', /Missing: 'pools.lab.kind'/],
    ['pools: { local: { kind: slurm } }', /'local' is this machine: give the pool another name/],
    [
      'pools: { lab: { kind: slurm, card_memory: 80GiB, partitio: x } }',
      /has no setting 'partitio'. Did you mean 'partition'\?/,
    ],
    ['pools: { lab: { kind: slurm, card_memory: 80GiB, host: x } }', /'pools.lab' has no setting 'host'/],
    ['pools: { box2: { kind: ssh } }', /Missing: 'pools.box2.host'/],
    ['pools: { lab: { kind: slurm } }', /Missing: 'pools.lab.card_memory'/],
    ['pools: { box2: { kind: ssh, host: -oProxyCommand=x } }', /'pools.box2.host': must be a host, or user@host/],
    ['pools: { lab: { kind: slurm, card_memory: 80GiB, partition: "a b" } }', /must be one word/],
    ['pools: { lab: { kind: slurm, card_memory: 80GiB, time_limit: 8hours } }', /Did you mean '8h'\?/],
    ['pools: { k8s: { kind: kubernetes } }', /Missing: 'pools.k8s.card_memory'/],
    [
      'pools: { k8s: { kind: kubernetes, card_memory: 80GiB, partition: x } }',
      /'pools.k8s' has no setting 'partition'/,
    ],
    [kubernetes('namespace: My_Space'), /'pools.k8s.namespace': must be the name of a namespace/],
    [kubernetes('resource: gpu'), /must be a resource such as nvidia.com\/gpu/],
    [kubernetes('volumes: [{ mount_path: /models }]'), /must have either 'claim' or 'host_path'/],
    [
      kubernetes('volumes: [{ claim: a, host_path: /b, mount_path: /models }]'),
      /must have either 'claim' or 'host_path'/,
    ],
    [kubernetes('volumes: [{ claim: a, mount_path: /dev/shm }]'), /infer needs '\/run\/infer' and '\/dev'/],
    [kubernetes('images: { vllm: "a b" }'), /must be an image such as/],
    [model('pools: [{ pool: lab, image: x }]'), /engines in the pool 'lab' have no image/],
    [model('pools: []'), /'models\[0\].pools' must not be empty/],
    [
      model('pools: [lap]'),
      /^f:2:\d+: Model 'a': there is no pool 'lap'. Add it to 'pools', or use local, lab, box2\./,
    ],
    [model('pools: [lab, lab]'), /the pool 'lab' is listed twice/],
    [`pools: { team: { kind: ssh, host: box, monthly_cost_limit: 5 } }`, /needs 'cost_per_hour' of the pool, above 0/],
    [model('pools: [{ pool: local, max_cards: 1 }]'), /'local' has no limits here/],
    [model('pools: [{ pool: box2, time_limit: 1h }]'), /the pool 'box2' has no time limit/],
    [model('devices: [0], pools: [lab]'), /'devices' names GPUs of this machine/],
    [model('engine: remote, url: "http://a/v1", pools: [lab]'), /infer starts no engine for 'remote'/],
    [
      model('engine: vllm, nodes: 2, devices: 8'),
      /^f:2:\d+: Model 'a': it spans 2 nodes, and 'local' is no cluster\. List only pools of the kind slurm or kubernetes in 'pools'/,
    ],
    [model('engine: vllm, nodes: 2, devices: 8, pools: [lab, box2]'), /and 'box2' is no cluster/],
    [model('engine: vllm, nodes: 2, pools: [lab]'), /'devices' must be the number of GPUs on each: devices: 8\./],
    [model('nodes: 0'), /'models\[0\]\.nodes'/],
    [`models: [{ id: a, source: /x.gguf, pools: [toString] }]`, /there is no pool 'toString'/],
  ])('%s', (text, message) => expect(() => parseConfig(text, 'f')).toThrow(message))
})

test('engines that write files may run on a machine without a shared folder', () => {
  const tasks = 'tasks: [slug/text-to-image], pools: [box2]'
  for (const entry of [
    `engine: sd-server, ${tasks}`,
    `engine: custom, protocol: openai, ${tasks}`,
    'engine: python, tasks: [slug/text-to-image], pools: [box2]',
    "engine: custom, command: [x, '{port}', '{outputs}'], tasks: [slug/text-to-image], pools: [box2]",
  ])
    expect(parseConfig(model(entry), 'f').models).toHaveLength(1)
})
