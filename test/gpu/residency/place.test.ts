import { describe, expect, test } from 'vitest'
import { type DeviceCapacity, type Occupant, type PlacementRequest, place } from '../../../gpu/residency/place.ts'

const GiB = 2 ** 30
const gpu = (id: string, gigabytes: number): DeviceCapacity => ({ id, kind: 'gpu', capacity: gigabytes * GiB })
/** A GPU and the processor with the same 24 GiB. */
const unified: DeviceCapacity[] = [
  { ...gpu('a', 24), sharesWith: ['cpu'] },
  { ...gpu('cpu', 24), kind: 'cpu', sharesWith: ['a'] },
]
const cpu = (gigabytes: number): DeviceCapacity => ({ id: 'cpu', kind: 'cpu', capacity: gigabytes * GiB })
const on = (engineId: string, devices: string, gigabytes: number, of: Partial<Occupant> = {}): Occupant => ({
  engineId,
  modelId: engineId,
  devices: devices.split(' '),
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
const busy = { busy: true }
const sharing = { devices: 2, takesShare: true }
/** A model of layers of half a gigabyte that takes one gigabyte more on each card; what it takes is `gigabytes` on one. */
const layered = (gigabytes: number, of: Partial<PlacementRequest> = {}): PlacementRequest => {
  const { devices = 1, mostDevices = 8 } = of
  const layers = Array.from({ length: (gigabytes - 1) * 2 }, () => GiB / 2)
  const bytes = (gigabytes - 1 + devices) * GiB
  return want(0, { mostDevices, split: { each: GiB, layers, by: 'booked' }, ...of, bytes })
}

describe('place', () => {
  const cases: [
    rule: string,
    want: PlacementRequest,
    occupants: Occupant[],
    capacities: DeviceCapacity[],
    decision: object,
  ][] = [
    ['an empty GPU is used', want(10), [], [gpu('a', 24)], { do: 'load', devices: ['a'], evict: [] }],
    ['one that fills a GPU fits', want(24), [], [gpu('a', 24)], { do: 'load', devices: ['a'], evict: [] }],
    [
      'several fit beside each other',
      want(10),
      [on('x', 'a', 10)],
      [gpu('a', 24)],
      { do: 'load', devices: ['a'], evict: [] },
    ],
    [
      'the GPU with free memory is preferred to one that needs an eviction',
      want(10),
      [on('x', 'a', 20)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['b'], evict: [] },
    ],
    [
      'an engine that takes the same share of two cards books the larger one by that share',
      want(44, sharing),
      [],
      [gpu('a', 24), gpu('b', 48)],
      { do: 'load', devices: ['a', 'b'], shares: [22 * GiB, 44 * GiB], evict: [] },
    ],
    [
      'it gets cards of one size where these suffice',
      want(44, sharing),
      [],
      [gpu('a', 48), gpu('b', 24), gpu('c', 24)],
      { do: 'load', devices: ['b', 'c'], shares: [22 * GiB, 22 * GiB] },
    ],
    [
      'what is on the larger one is evicted for its share',
      want(44, sharing),
      [on('x', 'b', 10)],
      [gpu('a', 24), gpu('b', 48)],
      { do: 'load', devices: ['a', 'b'], evict: ['x'] },
    ],
    [
      'it is refused where others use what it needs of the larger one',
      want(44, sharing),
      [],
      [gpu('a', 24), { ...gpu('b', 40), usedByOthers: 8 * GiB }],
      {
        do: 'refuse',
        reason:
          "'new' needs 22.0 GiB on each of 2 GPUs, and its engine takes the same share of all of them: the larger ones here have too little free for that.",
      },
    ],
    [
      'a model that is bound to a GPU uses no other, and evicts there',
      want(10, { only: ['a'] }),
      [on('x', 'a', 20)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['a'], evict: ['x'] },
    ],
    [
      'on a machine with unified memory an engine on the processor leaves the GPU less, and is evicted for it',
      want(20),
      [on('x', 'cpu', 10)],
      unified,
      { do: 'load', devices: ['a'], evict: ['x'] },
    ],
    ['and beside it fits what is left of both', want(14), [on('x', 'cpu', 10)], unified, { do: 'load', evict: [] }],
    [
      'the reverse',
      want(20, { kind: 'cpu' }),
      [on('x', 'a', 10)],
      unified,
      { do: 'load', devices: ['cpu'], evict: ['x'] },
    ],
    [
      'the tightest fit leaves the large GPU free',
      want(10),
      [],
      [gpu('a', 80), gpu('b', 24)],
      { do: 'load', devices: ['b'], evict: [] },
    ],
    ['evicts an idle one', want(20), [on('x', 'a', 20)], [gpu('a', 24)], { do: 'load', devices: ['a'], evict: ['x'] }],
    [
      'the least recently used is evicted first',
      want(10),
      [on('x', 'a', 10, { lastUsedAt: 5 }), on('y', 'a', 10, { lastUsedAt: 3 })],
      [gpu('a', 24)],
      { do: 'load', evict: ['y'] },
    ],
    [
      'no more are evicted than necessary',
      want(4),
      [on('x', 'a', 10, { lastUsedAt: 1 }), on('y', 'a', 12, { lastUsedAt: 2 })],
      [gpu('a', 24)],
      { do: 'load', evict: ['x'] },
    ],
    [
      'an idle one is evicted before a busy one is waited for',
      want(10),
      [on('x', 'a', 12, busy), on('y', 'a', 12, { lastUsedAt: 9 })],
      [gpu('a', 24)],
      { do: 'load', evict: ['y'] },
    ],
    [
      'a busy one is waited for, never stopped',
      want(20),
      [on('x', 'a', 20, busy)],
      [gpu('a', 24)],
      { do: 'wait', for: ['x'] },
    ],
    [
      'only the busy ones that must be evicted are waited for',
      want(20),
      [on('x', 'a', 10, busy), on('y', 'a', 10)],
      [gpu('a', 24)],
      { do: 'wait', for: ['x'] },
    ],
    [
      'a pinned one is not evicted',
      want(20),
      [on('x', 'a', 20, { pinned: true })],
      [gpu('a', 24)],
      {
        do: 'refuse',
        reason:
          "'new' needs 20.0 GiB of memory; beside 'x', which is kept loaded (replicas.min), one GPU here has at most 4.0 GiB.",
      },
    ],
    [
      'the memory beside a pinned one can suffice',
      want(4),
      [on('x', 'a', 20, { pinned: true })],
      [gpu('a', 24)],
      { do: 'load', evict: [] },
    ],
    [
      'too large for every GPU',
      want(30),
      [],
      [gpu('a', 24), gpu('b', 16)],
      { do: 'refuse', reason: "'new' needs 30.0 GiB of memory; the most that one GPU here has is 24.0 GiB." },
    ],
    [
      'too large beside other programs, which are named',
      want(20),
      [],
      [{ ...gpu('a', 12), usedByOthers: 12 * GiB }, gpu('b', 16)],
      {
        do: 'refuse',
        reason:
          "'new' needs 20.0 GiB of memory; the most that one GPU here has is 16.0 GiB while other programs use 12.0 GiB. End them and try again.",
      },
    ],
    [
      'too large without other programs too',
      want(30),
      [],
      [{ ...gpu('a', 12), usedByOthers: 12 * GiB }],
      { do: 'refuse', reason: "'new' needs 30.0 GiB of memory; the most that one GPU here has is 12.0 GiB." },
    ],
    [
      'no GPU at all',
      want(1),
      [],
      [cpu(64)],
      { do: 'refuse', reason: "'new' needs a GPU, and this server has found none." },
    ],
    [
      'too few GPUs',
      want(1, { devices: 4 }),
      [],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'refuse', reason: "'new' needs 4 GPUs; this server has 2." },
    ],
    [
      'a model over two GPUs takes half of each',
      want(40, { devices: 2 }),
      [],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['a', 'b'] },
    ],
    [
      'and does not fit where half is too much',
      want(60, { devices: 2 }),
      [],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'refuse' },
    ],
    [
      'of three GPUs the two cheapest',
      want(40, { devices: 2 }),
      [on('x', 'b', 20)],
      [gpu('a', 24), gpu('b', 24), gpu('c', 24)],
      { do: 'load', devices: ['a', 'c'], evict: [] },
    ],
    [
      'a model over two GPUs is evicted from both at once',
      want(20),
      [on('x', 'a b', 40)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', evict: ['x'] },
    ],
    [
      'both GPUs of a wide model are cleared',
      want(40, { devices: 2 }),
      [on('x', 'a', 20), on('y', 'b', 20)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', evict: ['x', 'y'] },
    ],
    [
      'one busy GPU of a wide model is waited for',
      want(40, { devices: 2 }),
      [on('x', 'a', 20, busy), on('y', 'b', 20)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'wait', for: ['x'] },
    ],
    [
      'the CPU is a separate device',
      want(10, { kind: 'cpu' }),
      [on('x', 'a', 20)],
      [gpu('a', 24), cpu(16)],
      { do: 'load', devices: ['cpu'], evict: [] },
    ],
    [
      'GPUs do not serve models for the CPU',
      want(20, { kind: 'cpu' }),
      [],
      [gpu('a', 24), cpu(16)],
      { do: 'refuse', reason: "'new' needs 20.0 GiB of memory; the most that one processor here has is 16.0 GiB." },
    ],
    [
      'a remote model takes no memory',
      want(99, { kind: 'none', devices: 0 }),
      [],
      [],
      { do: 'load', devices: [], evict: [] },
    ],
    [
      'another replica takes free memory',
      want(4, { mayEvict: false }),
      [on('x', 'a', 20)],
      [gpu('a', 24)],
      { do: 'load', evict: [] },
    ],
    [
      'another replica evicts nothing',
      want(10, { mayEvict: false }),
      [on('x', 'a', 20)],
      [gpu('a', 24)],
      { do: 'wait', for: [] },
    ],
    [
      'one engine of sufficient size is evicted, although smaller ones were used less recently',
      want(16),
      [
        on('a', 'x', 0.3, { lastUsedAt: 1 }),
        on('b', 'x', 0.6, { lastUsedAt: 2 }),
        on('c', 'x', 0.4, { lastUsedAt: 3 }),
        on('d', 'x', 0.5, { lastUsedAt: 4 }),
        on('e', 'x', 16, { lastUsedAt: 5 }),
      ],
      [gpu('x', 18)],
      { do: 'load', evict: ['e'] },
    ],
    [
      'fewer bytes are evicted rather than a larger engine that was used less recently',
      want(8),
      [on('x', 'a', 60, { lastUsedAt: 1 }), on('y', 'a', 16, { lastUsedAt: 2 })],
      [gpu('a', 80)],
      { do: 'load', evict: ['y'] },
    ],
    [
      'of engines whose sizes differ by less than an eighth, the least recently used is evicted',
      want(16),
      [on('x', 'a', 18, { lastUsedAt: 1 }), on('y', 'a', 17, { lastUsedAt: 2 })],
      [gpu('a', 40)],
      { do: 'load', evict: ['x'] },
    ],
    [
      'several small ones are evicted rather than a large one',
      want(4),
      [on('x', 'a', 20, { lastUsedAt: 1 }), on('y', 'a', 2, { lastUsedAt: 2 }), on('z', 'a', 2, { lastUsedAt: 3 })],
      [gpu('a', 24)],
      { do: 'load', evict: ['y', 'z'] },
    ],
    [
      'of two GPUs the one with fewer bytes to evict, not fewer engines',
      want(22),
      [on('x', 'a', 24), on('y', 'b', 3), on('z', 'b', 4)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['b'], evict: ['y', 'z'] },
    ],
    [
      'of two GPUs with equal engines the one that was used less recently',
      want(20),
      [on('x', 'a', 20, { lastUsedAt: 2 }), on('y', 'b', 20, { lastUsedAt: 1 })],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['b'], evict: ['y'] },
    ],
    [
      'of busy engines the one whose turn began first is waited for, whichever had a request last',
      want(10),
      [
        on('x', 'a', 12, { busy: true, turnSince: 2, lastUsedAt: 1 }),
        on('y', 'a', 12, { busy: true, turnSince: 1, lastUsedAt: 2 }),
      ],
      [gpu('a', 24)],
      { do: 'wait', for: ['y'], reserve: { engines: ['y'] } },
    ],
    [
      'a model that waits reserves the free memory that it needs besides that of engines',
      want(40, { devices: 2 }),
      [on('x', 'a', 12, busy), on('y', 'b', 22)],
      [gpu('a', 24), gpu('b', 24)],
      {
        do: 'wait',
        for: ['x'],
        reserve: { modelId: 'new', engines: ['y', 'x'], free: [{ device: 'a', bytes: 8 * GiB }] },
      },
    ],
    [
      'memory that a wide engine frees on one GPU need not be freed there again',
      want(40, { devices: 2 }),
      [on('x', 'a', 4, { lastUsedAt: 1 }), on('y', 'a b', 40, { lastUsedAt: 2 })],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', evict: ['y'] },
    ],
    [
      'among many engines, too, none is evicted without need',
      want(16),
      [
        ...Array.from({ length: 20 }, (_, at) => on(`s${at}`, 'a', 0.2, { lastUsedAt: at })),
        on('e', 'a', 16, { lastUsedAt: 99 }),
      ],
      [gpu('a', 20)],
      { do: 'load', evict: ['e'] },
    ],
    ['a model that can be divided is on one GPU', layered(20), [], [gpu('a', 24), gpu('b', 24)], { devices: ['a'] }],
    [
      'and in place of an idle one there',
      layered(20),
      [on('x', 'a', 10), on('y', 'b', 10)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['a'], evict: ['x'] },
    ],
    [
      'it is divided among two where one is too small',
      layered(40, { devices: 2 }),
      [],
      [gpu('a', 24), gpu('b', 24), gpu('c', 24)],
      { do: 'load', devices: ['a', 'b'], shares: [20.5 * GiB, 20.5 * GiB], layers: [39, 39], evict: [] },
    ],
    [
      'of uneven ones each takes what it has room for',
      layered(30, { devices: 2 }),
      [],
      [gpu('a', 12), gpu('b', 24)],
      { do: 'load', devices: ['a', 'b'], shares: [10.5 * GiB, 20.5 * GiB], layers: [19, 39] },
    ],
    [
      'the ones that leave the least are taken',
      layered(30, { devices: 2 }),
      [],
      [gpu('a', 80), gpu('b', 24), gpu('c', 12)],
      { do: 'load', devices: ['b', 'c'] },
    ],
    [
      'three where two are too small',
      layered(60, { devices: 3 }),
      [],
      [gpu('a', 24), gpu('b', 24), gpu('c', 24)],
      { do: 'load', devices: ['a', 'b', 'c'] },
    ],
    [
      'idle ones make room on both, and no more than is needed',
      layered(40, { devices: 2 }),
      [on('x', 'a', 20), on('y', 'b', 6), on('z', 'b', 2, { lastUsedAt: 1 })],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['a', 'b'], evict: ['x', 'y'] },
    ],
    [
      'it is divided rather than wait for busy ones',
      layered(20),
      [on('x', 'a', 10, busy), on('y', 'b', 10, busy)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['a', 'b'], shares: [10.5 * GiB, 10.5 * GiB], evict: [] },
    ],
    [
      'and beside those that are kept loaded',
      layered(20),
      [on('x', 'a', 10, { pinned: true }), on('y', 'b', 12, { pinned: true })],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', devices: ['a', 'b'], evict: [] },
    ],
    [
      'where it has no room at all it waits for one GPU',
      layered(20),
      [on('x', 'a', 20, busy), on('y', 'b', 20, busy)],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'wait', for: ['x'] },
    ],
    [
      'a divided one waits for what is busy on its GPUs, and reserves the rest',
      layered(40, { devices: 2 }),
      [on('x', 'a', 12, busy)],
      [gpu('a', 24), gpu('b', 24)],
      {
        do: 'wait',
        for: ['x'],
        where: { devices: ['a', 'b'] },
        reserve: {
          free: [
            { device: 'a', bytes: 8.5 * GiB },
            { device: 'b', bytes: 20.5 * GiB },
          ],
        },
      },
    ],
    [
      'what was measured above the estimate is divided as well',
      { ...layered(40, { devices: 2 }), bytes: 45.1 * GiB },
      [],
      [gpu('a', 24), gpu('b', 24)],
      { do: 'load', shares: [22.55 * GiB, 22.55 * GiB] },
    ],
    [
      'too large for all GPUs together',
      layered(60, { devices: 2 }),
      [on('x', 'a', 4, { pinned: true })],
      [gpu('a', 24), gpu('b', 24)],
      {
        do: 'refuse',
        reason:
          "'new' needs 61.0 GiB of memory on 2 GPUs; the GPUs here have 44.0 GiB together beside 'x', which is kept loaded (replicas.min).",
      },
    ],
    [
      'after an error of the GPU others are preferred',
      layered(40, { devices: 2, avoid: ['a'] }),
      [],
      [gpu('a', 24), gpu('b', 24), gpu('c', 24)],
      { do: 'load', devices: ['b', 'c'] },
    ],
    [
      'an engine in uneven parts frees its part of each GPU',
      want(12),
      [on('x', 'a b', 30, { shares: [10 * GiB, 20 * GiB] })],
      [gpu('b', 24)],
      { do: 'load', evict: ['x'] },
    ],
    [
      'a GPU with a fault is not used, and named to a model that is bound to it',
      want(1, { only: ['a'] }),
      [],
      [{ ...gpu('a', 0), fault: 'It is lost.' }, gpu('b', 24)],
      { reason: "'new' needs a GPU, and this server has none that works. a is not used: It is lost." },
    ],
    ['a GPU that other processes have filled', want(1), [], [gpu('a', 0)], { do: 'refuse' }],
  ]
  test.each(cases)('%s', (_rule, wanted, occupants, capacities, decision) =>
    expect(place(wanted, occupants, capacities)).toMatchObject(decision),
  )
})

test('a wait names in a sentence the model that it is for', () => {
  expect(place(want(20), [on('x', 'a', 20, busy)], [gpu('a', 24)])).toMatchObject({
    reason: "'new' waits for the memory of 'x'.",
  })
})
