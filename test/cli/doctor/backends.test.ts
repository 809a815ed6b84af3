import { expect, test } from 'vitest'
import { checkBackends } from '../../../cli/doctor/machine.ts'
import { neededFor, sentenceOf } from '../../../cli/engines/offer-gpu.ts'
import type { BusCard, GraphicsCards } from '../../../gpu/devices/graphics-cards.ts'
import { type BackendName, type BackendReport, backendNames } from '../../../gpu/engines/gguf/backend.ts'
import type { BackendChoice } from '../../../gpu/engines/gguf/choose-backend.ts'

const needsCuda: BackendChoice = { backend: 'cuda', why: 'CUDA 13 for 1 card', advice: null }
const needsDriver: BackendChoice = { backend: null, none: false, why: 'No driver', advice: 'Install it.' }

/** The reports of all backends: those not named are missing, and the processor works. */
const reports = (states: Partial<Record<BackendName, BackendReport['state']>>): BackendReport[] =>
  backendNames.map(name => {
    const state = states[name] ?? (name === 'cpu' ? 'works' : 'missing')
    return { name, state, detail: state, advice: state === 'works' ? null : `advice of ${name}`, folder: null }
  })

test.each<[what: string, states: Parameters<typeof reports>[0], needed: BackendChoice | null, found: string[]]>([
  [
    'a card without backend is one recommendation',
    {},
    needsCuda,
    [
      'GPU backend warning: not installed; it would be CUDA 13 for 1 card → Run: infer engine setup gpu (or: infer doctor --fix)',
      'backend cpu fine: works',
    ],
  ],
  [
    'a card without driver',
    {},
    needsDriver,
    ['GPU backend warning: No driver → Install it.', 'backend cpu fine: works'],
  ],
  [
    'the chosen backend fails',
    { cuda: 'fails', vulkan: 'fails' },
    needsCuda,
    ['GPU backend warning: cuda: fails; vulkan: fails → advice of cuda', 'backend cpu fine: works'],
  ],
  [
    'another backend fails than the chosen one',
    { vulkan: 'fails' },
    needsCuda,
    [
      'GPU backend warning: vulkan: fails → Run: infer engine setup gpu (or: infer doctor --fix)',
      'backend cpu fine: works',
    ],
  ],
  [
    'one that works is enough',
    { cuda: 'fails', vulkan: 'works' },
    needsCuda,
    [
      'backend cuda fine: fails',
      'backend cuda-12 fine: missing',
      'backend vulkan fine: works',
      'backend cpu fine: works',
    ],
  ],
  [
    'the processor fails',
    { cpu: 'fails', cuda: 'works' },
    null,
    [
      'backend cuda fine: works',
      'backend cuda-12 fine: missing',
      'backend vulkan fine: missing',
      'backend cpu broken: fails → advice of cpu',
    ],
  ],
])('%s', (_, states, needed, found) => {
  expect(
    checkBackends(reports(states), needed).map(
      ({ name, state, detail, advice }) => `${name} ${state}: ${detail}${advice === null ? '' : ` → ${advice}`}`,
    ),
  ).toEqual(found)
})

test('a missing backend that no card needs is fine', () => {
  const missing = reports({}).map(report => ({ ...report, advice: null }))
  expect(checkBackends(missing, null).map(({ state }) => state)).toEqual(['fine', 'fine', 'fine', 'fine'])
})

const cards = (of: Partial<GraphicsCards>): GraphicsCards => ({
  nvidia: [],
  driver: null,
  fault: null,
  bus: [],
  renders: false,
  ...of,
})
const onBus = (maker: BusCard['maker'], integrated = false) => ({ bus: [{ maker, integrated }], renders: true })
test.each<[what: string, cards: GraphicsCards, isOffered: boolean]>([
  ['an NVIDIA card', cards({ nvidia: [{ name: 'Card', capability: 8.6 }] }), true],
  ['an AMD card', cards(onBus('amd')), true],
  ['a card with a broken driver', cards({ fault: 'It hangs.' }), true],
  ['a part of an Intel processor', cards(onBus('intel', true)), false],
  ['the display of a virtual machine', cards({ renders: true }), false],
  ['nothing', cards({}), false],
])('%s is worth an offer: %o', (_, found, isOffered) => {
  expect(neededFor(found, needsCuda)).toBe(isOffered ? needsCuda : null)
})

test('without a terminal one line says it', () => {
  expect(sentenceOf(needsCuda)).toBe(
    'The built-in engine does not use the GPUs: it needs CUDA 13 for 1 card. Run: infer engine setup gpu',
  )
  expect(sentenceOf(needsDriver)).toBe('The built-in engine does not use the GPUs. No driver. Install it.')
})
