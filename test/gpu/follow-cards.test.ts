import { expect, test } from 'vitest'
import type { Model } from '../../core/models/model.ts'
import { followCards } from '../../gpu/follow-cards.ts'
import { modelOf } from './_models.ts'

const builtIn = { engine: 'gguf', command: undefined, source: '/models/a.gguf' }
const model = (id: string, of: object = {}) => modelOf(id, { ...builtIn, ...of })
const onProcessor = { residents: [{}], placement: { kind: 'cpu' } }
const states: Record<string, object> = {
  moves: onProcessor,
  idle: { residents: [], placement: { kind: 'cpu' } },
  'on-card': { residents: [{}], placement: { kind: 'gpu' } },
  bound: onProcessor,
  other: onProcessor,
  without: onProcessor,
}

/** Looks are made by `look`, with these facts. */
function setUp() {
  const said: string[] = []
  let facts = 'at first'
  const devices: string[] = []
  let next: (() => void) | undefined
  const end = followCards({
    dataDir: '/nonexistent',
    environment: {},
    memory: { measure: async () => void said.push('measure'), devices: () => devices.map(id => ({ id })) as never },
    backends: {
      find: async one => ((one as Model).id === 'without' ? null : { gpu: 'cuda', folder: '', linked: '' }),
    },
    models: () => [
      model('moves'),
      model('idle'),
      model('never'),
      model('on-card'),
      model('bound', { devices: 'cpu' }),
      model('other', { engine: 'custom', command: ['{port}'], source: undefined }),
      model('without'),
      model('disabled', { enabled: false }),
    ],
    residency: { find: id => states[id] as never, tick: () => {}, refresh: () => void said.push('placed') },
    stateOf: async id => void said.push(`place ${id}`),
    log: { info() {}, warn() {} } as never,
    clock: {
      after(_ms, run) {
        next = run
        return () => (next = undefined)
      },
    },
    facts: () => facts,
  })
  return {
    said,
    devices,
    end,
    isLooking: () => next !== undefined,
    look: async (now: string) => {
      facts = now
      next!()
      await new Promise(setImmediate)
    },
  }
}

test('a new driver or backend moves the models that run on the processor and can use the cards', async () => {
  const { look, said } = setUp()
  await look('at first')
  expect(said).toEqual([])
  await look('half installed')
  await look('installed')
  expect(said).toEqual([])
  await look('installed')
  expect(said).toEqual(['measure', 'place moves', 'placed'])
  await look('installed')
  expect(said).toHaveLength(3)
  // A second change counts like the first.
  await look('removed')
  await look('removed')
  expect(said).toHaveLength(6)
})

test('a card that is found long after its driver counts too', async () => {
  const { look, said, devices } = setUp()
  await look('driver')
  await look('driver')
  expect(said.splice(0)).toContain('place moves')
  devices.push('gpu0')
  await look('driver')
  await look('driver')
  expect(said).toContain('place moves')
})

test('what comes and goes between two looks is nothing, and after the end nobody looks', async () => {
  const { look, said, end, isLooking } = setUp()
  await look('other')
  await look('at first')
  await look('at first')
  expect(said).toEqual([])
  expect(isLooking()).toBe(true)
  end()
  expect(isLooking()).toBe(false)
})
