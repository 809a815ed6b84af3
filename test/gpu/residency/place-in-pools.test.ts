import { describe, expect, test } from 'vitest'
import type { DeviceCapacity, Occupant, PlacementRequest, PoolLayout } from '../../../gpu/residency/place.ts'
import { placeInPools, unfitReason } from '../../../gpu/residency/place-in-pools.ts'

const GiB = 2 ** 30
const here = (id: string, gigabytes: number): DeviceCapacity => ({ id, kind: 'gpu', capacity: gigabytes * GiB })
/** A card of 80 GiB on a machine of the pool `lab`. */
const lab = (node: string, card: number, of: Partial<DeviceCapacity> = {}): DeviceCapacity => ({
  ...here(`lab/${node}/gpu${card}`, 80),
  pool: 'lab',
  node,
  ...of,
})
const on = (engineId: string, devices: readonly string[], gigabytes: number, of: Partial<Occupant> = {}): Occupant => ({
  engineId,
  modelId: engineId,
  devices,
  bytes: gigabytes * GiB,
  busy: false,
  pinned: false,
  turnSince: 0,
  turnUntil: null,
  reloadMs: gigabytes * 1_000,
  lastUsedAt: 0,
  runMs: null,
  ...of,
})
const want = (gigabytes: number, of: Partial<PlacementRequest> = {}): PlacementRequest => ({
  modelId: 'new',
  bytes: gigabytes * GiB,
  devices: 1,
  kind: 'gpu',
  mayEvict: true,
  ...of,
})
const inLab = (gigabytes: number, of: Partial<PoolLayout> = {}): PoolLayout => ({
  kind: 'gpu',
  devices: 1,
  bytes: gigabytes * GiB,
  pool: 'lab',
  slots: 4,
  ...of,
})
const two = [lab('n1', 0), lab('n1', 1), lab('n2', 0), lab('n2', 1)]
const busy = { busy: true }

describe('a model is placed in its pools', () => {
  test.each<[rule: string, want: PlacementRequest, loaded: Occupant[], capacities: DeviceCapacity[], decision: object]>(
    [
      [
        'this machine first, where it has free memory',
        want(10, { elsewhere: [inLab(80)] }),
        [],
        [here('gpu0', 24), ...two],
        { do: 'load', devices: ['gpu0'], evict: [] },
      ],
      [
        'the pool before an eviction here',
        want(20, { elsewhere: [inLab(80)] }),
        [on('idle', ['gpu0'], 20)],
        [here('gpu0', 24), ...two],
        { do: 'load', devices: ['lab/n1/gpu0'], pool: 'lab', evict: [] },
      ],
      [
        'an eviction here before one in the pool',
        want(20, { elsewhere: [inLab(80)] }),
        [on('idle', ['gpu0'], 20), ...two.map(({ id }) => on(id, [id], 80))],
        [here('gpu0', 24), ...two],
        { do: 'load', devices: ['gpu0'], evict: ['idle'] },
      ],
      [
        'an idle engine in the pool before a busy one here',
        want(20, { elsewhere: [inLab(80)] }),
        [on('busy', ['gpu0'], 20, busy), on('x', [two[0]!.id], 80)],
        [here('gpu0', 24), two[0]!],
        { do: 'load', devices: ['lab/n1/gpu0'], pool: 'lab', evict: ['x'] },
      ],
      [
        'the pool first, where it is listed first',
        want(80, { pool: 'lab', elsewhere: [{ ...inLab(20), pool: undefined }] }),
        [],
        [here('gpu0', 24), ...two],
        { do: 'load', devices: ['lab/n1/gpu0'], pool: 'lab', evict: [] },
      ],
      [
        'without a card here, in the pool',
        want(80, { kind: 'gpu', elsewhere: [inLab(80)] }),
        [],
        two,
        { do: 'load', devices: ['lab/n1/gpu0'], pool: 'lab' },
      ],
      [
        'a model of this machine never in a pool',
        want(40),
        [],
        [here('gpu0', 24), ...two],
        { do: 'refuse', reason: "'new' needs 40.0 GiB of memory; the most that one GPU here has is 24.0 GiB." },
      ],
      [
        'several cards on one machine',
        want(160, { pool: 'lab', devices: 2 }),
        [on('x', ['lab/n1/gpu1'], 80, busy)],
        two,
        { do: 'load', devices: ['lab/n2/gpu0', 'lab/n2/gpu1'], pool: 'lab', evict: [] },
      ],
      [
        'the machine with the least free memory',
        want(80, { pool: 'lab' }),
        [on('x', ['lab/n2/gpu1'], 80, busy)],
        two,
        { do: 'load', devices: ['lab/n2/gpu0'], pool: 'lab', evict: [] },
      ],
      [
        'not on cards of several machines',
        want(240, { pool: 'lab', devices: 3 }),
        [],
        two,
        { do: 'refuse', reason: "In the pool 'lab': 'new' needs 3 GPUs of one machine, and none has as many." },
      ],
      [
        'the cheapest eviction of all machines',
        want(80, { pool: 'lab' }),
        two.map(({ id }, at) => on(`e${at}`, [id], 80, { reloadMs: at === 2 ? 5_000 : 50_000 })),
        two,
        { do: 'load', devices: ['lab/n2/gpu0'], evict: ['e2'] },
      ],
      [
        'it waits for busy engines, with the pool of the cards',
        want(80, { pool: 'lab' }),
        two.map(({ id }, at) => on(`e${at}`, [id], 80, busy)),
        two,
        { do: 'wait', for: ['e0'], where: { pool: 'lab', devices: ['lab/n1/gpu0'] } },
      ],
      [
        'a pool whose devices are not known is waited for',
        want(80, { pool: 'lab' }),
        [],
        [lab('', 0, { capacity: 0, unknown: 'sinfo does not answer.' })],
        { do: 'wait', for: [], reason: "'new' waits for the pool 'lab': sinfo does not answer." },
      ],
      [
        'the next pool, where one is not known',
        want(80, { pool: 'lab', elsewhere: [{ ...inLab(20), pool: undefined }] }),
        [],
        [here('gpu0', 24), lab('n1', 0, { unknown: 'sinfo does not answer.' })],
        { do: 'load', devices: ['gpu0'] },
      ],
      [
        'no card of the kind',
        want(1, { pool: 'lab', kind: 'cpu' }),
        [],
        two,
        { do: 'refuse', reason: "'new' needs a processor, and the pool 'lab' has none for models." },
      ],
    ],
  )('%s', (_rule, request, loaded, capacities, decision) => {
    expect(placeInPools(request, loaded, capacities)).toMatchObject(decision)
  })

  test('here, nothing says that there are pools', () => {
    const made = placeInPools(want(10), [], [here('gpu0', 24)])
    expect(made).toEqual({ do: 'load', devices: ['gpu0'], evict: [] })
    expect(unfitReason(want(40, { elsewhere: [inLab(80)] }), [here('gpu0', 24), ...two])).toBeNull()
  })
})

describe('limits', () => {
  const x = on('x', ['lab/n1/gpu0'], 40)
  const own = on('own', ['lab/n1/gpu0'], 80, { modelId: 'new', busy: true })
  test.each<[rule: string, limits: object, loaded: Occupant[], decision: object, of?: Partial<PlacementRequest>]>([
    ['max_engines: one that is idle makes room', { maxEngines: 1 }, [x], { do: 'load', evict: ['x'] }],
    [
      'max_engines: one that is busy is waited for',
      { maxEngines: 1 },
      [{ ...x, busy: true }],
      { do: 'wait', for: ['x'] },
    ],
    ['max_engines: no further one in free memory', { maxEngines: 1 }, [x], { do: 'wait' }, { mayEvict: false }],
    ['max_cards: only cards in use', { maxCards: 1 }, [x], { do: 'load', devices: ['lab/n1/gpu0'], evict: ['x'] }],
    ['max_cards: as long as there are more', { maxCards: 2 }, [x], { do: 'load', devices: ['lab/n1/gpu1'], evict: [] }],
    [
      'of the model, engines',
      { ownEngines: 1 },
      [own],
      { do: 'wait', for: [], reason: expect.stringContaining('max_engines') as string },
    ],
    [
      'of the model, cards',
      { ownCards: 1 },
      [own],
      { do: 'wait', for: [], reason: expect.stringContaining('max_cards') as string },
    ],
  ])('%s', (_rule, limits, loaded, decision, of) => {
    expect(placeInPools(want(80, { pool: 'lab', limits, ...of }), loaded, two)).toMatchObject(decision)
  })

  test('cards of all machines together are never more', () => {
    const request = want(80, { pool: 'lab', limits: { maxCards: 2 }, mayEvict: false })
    const loaded: Occupant[] = []
    for (let count = 0; ; count++) {
      const made = placeInPools(request, loaded, two)
      if (made.do !== 'load') {
        expect(count).toBe(2)
        return
      }
      loaded.push(on(`e${count}`, made.devices, 80, busy))
    }
  })
})

test('a decision over 64 machines and 512 engines takes at most a millisecond', () => {
  const cards = Array.from({ length: 64 }, (_, node) =>
    Array.from({ length: 8 }, (_, at) => lab(`n${node}`, at)),
  ).flat()
  const models = (busy: boolean) =>
    cards.map((_, at) => on(`e${at}`, [cards[at]!.id], 80, { busy, lastUsedAt: at, turnSince: at }))
  const cases: [string, PlacementRequest, Occupant[]][] = [
    ['free memory', want(80, { elsewhere: [inLab(80)] }), models(true).slice(0, 500)],
    ['one card', want(80, { elsewhere: [inLab(80)] }), models(false)],
    ['eight cards', want(640, { elsewhere: [inLab(640, { devices: 8 })] }), models(false)],
    ['a wait', want(640, { elsewhere: [inLab(640, { devices: 8 })] }), models(true)],
    [
      'a limit',
      want(80, { elsewhere: [inLab(80, { limits: { maxCards: 500, ownCards: 4 } })] }),
      models(false).slice(0, 500),
    ],
  ]
  for (const [name, request, loaded] of cases) {
    const all = [here('gpu0', 24), ...cards]
    const times = Array.from({ length: 60 }, () => {
      const began = performance.now()
      placeInPools(request, loaded, all)
      return performance.now() - began
    })
    // Alone, each takes 0.2 to 0.7 ms on one core of 2 GHz. The shortest says what the decision costs on a busy machine too.
    expect(Math.min(...times), name).toBeLessThan(3)
  }
})

describe('a model that spans nodes', () => {
  const three = ['n1', 'n2', 'n3'].flatMap(node => [lab(node, 0), lab(node, 1)])
  const wide = (of: Partial<PlacementRequest> = {}) => want(320, { pool: 'lab', devices: 4, nodes: 2, ...of })
  const both = (node: string) => [`lab/${node}/gpu0`, `lab/${node}/gpu1`]
  test.each<[rule: string, loaded: Occupant[], decision: object, of?: Partial<PlacementRequest>]>([
    [
      'as many cards of each of its nodes, where all are free',
      [on('x', ['lab/n1/gpu1'], 80, busy)],
      { do: 'load', devices: [...both('n2'), ...both('n3')], evict: [], pool: 'lab' },
    ],
    [
      'one card of each of three nodes',
      [],
      { do: 'load', devices: ['lab/n1/gpu0', 'lab/n2/gpu0', 'lab/n3/gpu0'] },
      { bytes: 240 * GiB, devices: 3, nodes: 3 },
    ],
    [
      'idle engines make room, on the nodes where that costs least',
      [on('x', ['lab/n1/gpu1'], 80), on('y', ['lab/n2/gpu0'], 80, { reloadMs: 500 }), on('z', both('n3'), 160)],
      { do: 'load', devices: [...both('n2'), ...both('n1')], evict: ['y', 'x'] },
    ],
    [
      'an engine that spans nodes makes room on all of them',
      [on('x', [...both('n1'), ...both('n2')], 320), on('y', both('n3'), 160, { pinned: true })],
      { do: 'load', devices: [...both('n1'), ...both('n2')], evict: ['x'] },
    ],
    [
      'it waits for busy engines, and all of its nodes are reserved',
      [on('x', ['lab/n1/gpu1'], 80, busy), on('y', ['lab/n2/gpu0'], 80, busy)],
      {
        do: 'wait',
        for: ['x'],
        reserve: {
          engines: ['x'],
          free: [...both('n3'), 'lab/n1/gpu0'].map(device => ({ device, bytes: 80 * GiB })),
        },
      },
    ],
    [
      'another engine of it uses free nodes only',
      [on('x', ['lab/n1/gpu1'], 80), on('y', ['lab/n2/gpu0'], 80)],
      { do: 'wait', for: [], reason: "'new' needs 2 nodes with 2 GPUs each free in the pool 'lab'; 1 has them." },
      { mayEvict: false },
    ],
    [
      'a pool with fewer nodes',
      [],
      { do: 'refuse', reason: "In the pool 'lab': 'new' needs 4 nodes with 2 GPUs each; 3 have as many." },
      { bytes: 640 * GiB, devices: 8, nodes: 4 },
    ],
    [
      'a pool with fewer GPUs on a node',
      [],
      { do: 'refuse', reason: "In the pool 'lab': 'new' needs 2 nodes with 3 GPUs each; none has as many." },
      { devices: 6 },
    ],
    [
      'a limit of cards that leaves no room for it',
      [on('x', both('n1'), 160, busy)],
      { do: 'wait', for: ['x'] },
      { limits: { maxCards: 4 } },
    ],
  ])('%s', (_rule, loaded, decision, of) => expect(placeInPools(wide(of), loaded, three)).toMatchObject(decision))
})
