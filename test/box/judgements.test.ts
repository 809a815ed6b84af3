import { expect, test } from 'vitest'
import type { Acknowledged, Call, Fault } from './box.ts'
import { type Ending, judgements } from './judgements.ts'

const call: Call = {
  actor: 'coding agent',
  model: 'code/agent',
  at: 10_000,
  began: 10_100,
  ended: 10_300,
  outcome: 'served',
  detail: '',
  jobId: 'job_1',
}
const work = (kind: string): Acknowledged => ({ kind, id: kind, at: 0, check: async () => null })
const crash: Fault = { kind: 'crash', name: '', at: 20_000, ended: 22_000, model: 'code/agent', result: '', steps: [] }
const kill: Fault = { ...crash, kind: 'kill', model: null }
const foreign: Fault = { ...kill, kind: 'foreign' }
const wait = {
  id: 'job_1',
  model: 'code/agent',
  waitedMs: 2_000,
  sentences: new Set(['It waits.']),
  unexplained: new Set<string>(),
}

interface Seen {
  calls?: Call[]
  faults?: Fault[]
  waits?: (typeof wait)[]
  refused?: { model: string; at: number }[]
  held?: { model: string | null; card: number; mebibytes: number; pid: null; program: string }[]
}

/** A run in which all is well, but for what is given. */
function endingOf({ calls = [], faults = [], waits = [], refused = [], held = [] }: Seen, of: Partial<Ending>): Ending {
  const enough = ['coding agent', 'chat user'].flatMap(actor => Array.from({ length: 5 }, () => ({ ...call, actor })))
  const box = {
    calls: [...enough, ...calls],
    faults,
    acknowledged: ['batch', 'image job', 'execution'].map(work),
    cards: { refused, holders: () => held },
  }
  return {
    box: box as unknown as Ending['box'],
    waits: { seen: new Map(waits.map(one => [one.id, one])), stop: async () => {} },
    lost: new Map(),
    orphans: [],
    problems: [],
    database: '',
    vulkan: { result: '', wrong: [] },
    ...of,
  }
}

const broken: Call = { ...call, at: 19_900, began: 19_950, ended: 20_010, outcome: 'broken' }
const slow: Call = { ...call, at: 10_000, began: 12_000, ended: 12_100 }

test.each<[what: string, seen: Seen, of: Partial<Ending>, contradicted: RegExp | null]>([
  ['all is well', {}, {}, null],
  ['lost work', {}, { lost: new Map([['batch', 'it has failed']]) }, /acknowledged work/],
  ['a refusal', { calls: [{ ...call, outcome: 'refused' }] }, {}, /refused/],
  ['a refusal while the server starts', { calls: [{ ...broken, outcome: 'refused' }], faults: [kill] }, {}, null],
  [
    'a refusal after the crash',
    { calls: [{ ...broken, at: 20_500, began: null, ended: 21_000, outcome: 'refused' }], faults: [crash] },
    {},
    /refused/,
  ],
  ['a broken answer', { calls: [broken] }, {}, /breaks off/],
  ['an answer that the crash breaks', { calls: [broken], faults: [crash] }, {}, null],
  ['one of another model', { calls: [{ ...broken, model: 'chat/assistant' }], faults: [crash] }, {}, /breaks off/],
  ['one that had not begun', { calls: [{ ...broken, began: null }], faults: [crash] }, {}, /breaks off/],
  ['one that the kill breaks', { calls: [broken], faults: [kill] }, {}, null],
  ['one that ended before the kill', { calls: [{ ...broken, ended: 19_990 }], faults: [kill] }, {}, /breaks off/],
  ['a wait that nobody saw', { calls: [slow] }, {}, /every wait/],
  ['a wait with a sentence', { calls: [slow], waits: [wait] }, {}, null],
  ['a wait with half a sentence', { waits: [{ ...wait, unexplained: new Set(['Engine exited']) }] }, {}, /every wait/],
  [
    'a load without memory',
    { refused: [{ model: 'code/agent', at: 21_000 }], faults: [crash] },
    {},
    /too little memory/,
  ],
  ['a load beside another program', { refused: [{ model: 'code/agent', at: 21_000 }], faults: [foreign] }, {}, null],
  ['an answer that the loss of its card breaks', { calls: [broken], faults: [{ ...crash, kind: 'lost' }] }, {}, null],
  [
    'a lost card that is named late',
    { faults: [{ ...crash, kind: 'lost', steps: [{ what: 'named', ms: 10_001, withinMs: 10_000 }] }] },
    {},
    /falls off/,
  ],
  [
    'a lost card that is named in time',
    { faults: [{ ...crash, kind: 'lost', steps: [{ what: 'named', ms: 9_999, withinMs: 10_000 }] }] },
    {},
    null,
  ],
  ['an orphan', {}, { orphans: [1] }, /no process/],
  ['memory in use', { held: [{ model: null, card: 0, mebibytes: 1, pid: null, program: 'x' }] }, {}, /no process/],
  ['a Vulkan device that is not used', {}, { vulkan: { result: '', wrong: ['on the processor'] } }, /Vulkan/],
  ['a damaged database', {}, { database: 'infer db check ended with 1' }, /database/],
  ['an actor that failed', {}, { problems: ['batch: no answer'] }, /every actor/],
])('%s', (_what, seen, of, contradicted) => {
  const ending = endingOf(seen, of)
  const found = judgements.filter(({ contradictions }) => contradictions(ending).length > 0).map(({ name }) => name)
  expect(found).toEqual(contradicted === null ? [] : [expect.stringMatching(contradicted)])
})
