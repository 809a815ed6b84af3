import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type SimulatedRequest, simulatedEngines } from './_suspect-engines.ts'

type Simulation = ReturnType<typeof simulatedEngines>

/** Short calls, one each time, and how they were served. */
function shortCalls({ send }: Pick<Simulation, 'send'>, modelId = 'm') {
  const begunAt = performance.now()
  const sent: SimulatedRequest[] = []
  const stops = () => {
    const starts = sent.map(({ startedAt }) => Math.min(startedAt, performance.now())).toSorted((a, b) => a - b)
    return starts.map((at, which) => at - (starts[which - 1] ?? begunAt))
  }
  return {
    each: () => void sent.push(send(`${modelId} short${sent.length}`, 15, { modelId })),
    answered: () => sent.filter(({ endedAt }) => endedAt < Number.POSITIVE_INFINITY).length / sent.length,
    /** The longest time in which none of them began, milliseconds. */
    longestStopMs: () => Math.max(...stops()),
    /** The share of the time that was part of such a stop. */
    stopped: () => stops().reduce((sum, ms) => sum + (ms > 200 ? ms : 0), 0) / (performance.now() - begunAt),
  }
}
const ran = ({ endedAt }: SimulatedRequest) => endedAt < Number.POSITIVE_INFINITY
const ranAlone = (request: SimulatedRequest) => ran(request) && request.aloneUntil === request.endedAt
const waitedMs = ({ startedAt, arrivedAt }: SimulatedRequest) => startedAt - arrivedAt

test('others are served while a suspect waits beside a long stream, and it runs beside them after a while', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  engines.crashed(['suspect', 'other'])
  engines.send('stream', 60_000)
  const suspect = engines.send('suspect', 20)
  const short = shortCalls(engines)
  engines.pass(60_000, short.each)
  expect(short.answered()).toBeGreaterThan(0.99)
  expect(short.longestStopMs()).toBeLessThanOrEqual(2_100)
  expect(waitedMs(suspect)).toBeLessThanOrEqual(10_100)
})

test('a suspect waits for no stream if short calls alone keep its engine busy', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  engines.crashed(['suspect', 'other'])
  const short = shortCalls(engines)
  engines.pass(1_000, short.each, 20)
  const suspect = engines.send('suspect', 20)
  engines.pass(1_000, short.each, 20)
  expect(ranAlone(suspect)).toBe(true)
  expect(waitedMs(suspect)).toBeLessThanOrEqual(20)
  expect(short.longestStopMs()).toBeLessThanOrEqual(60)
})

test('an engine without work serves the suspects first, one after another', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  const ids = ['a', 'b', 'c', 'd']
  engines.crashed(ids)
  const suspects = ids.map((id, at) => engines.send(id, 100, { job: at > 1 }))
  const short = shortCalls(engines)
  engines.pass(1_000, short.each, 20)
  expect(suspects.map(ranAlone)).toEqual([true, true, true, true])
  expect(Math.max(...suspects.map(({ endedAt }) => endedAt)) - suspects[0]!.arrivedAt).toBeLessThanOrEqual(500)
})

test('several suspects and a stream: each runs, one at a time, and others are stopped for a quarter of the time at most', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  const ids = ['a', 'b', 'c', 'd', 'e']
  engines.crashed(ids)
  engines.send('stream', 60_000)
  const suspects = ids.map((id, at) => engines.send(id, 500, { job: at > 2 }))
  const short = shortCalls(engines)
  engines.pass(30_000, short.each)
  expect(suspects.map(ran)).toEqual(ids.map(() => true))
  const times = suspects.map(({ startedAt }) => startedAt).toSorted((a, b) => a - b)
  expect(Math.min(...times.slice(1).map((at, which) => at - times[which]!))).toBeGreaterThanOrEqual(500)
  expect(short.answered()).toBeGreaterThan(0.99)
  expect(short.stopped()).toBeLessThanOrEqual(0.26)
})

test('suspects of one model stop no other model', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 }, n: { engines: 1, slots: 8 } })
  engines.crashed(['a', 'b'])
  engines.send('stream', 20_000)
  const suspects = ['a', 'b'].map(id => engines.send(id, 100))
  const [short, other] = [shortCalls(engines), shortCalls(engines, 'n')]
  engines.pass(20_000, () => {
    short.each()
    other.each()
  })
  expect(suspects.map(ran)).toEqual([true, true])
  expect(short.answered()).toBeGreaterThan(0.99)
  expect(other.longestStopMs()).toBeLessThanOrEqual(100)
})

test('of two engines one is held', () => {
  const engines = simulatedEngines({ m: { engines: 2, slots: 8 } })
  engines.crashed(['suspect', 'other'])
  for (const name of ['stream', 'another']) engines.send(name, 60_000)
  engines.send('suspect', 20)
  const short = shortCalls(engines)
  engines.pass(20_000, short.each)
  expect(short.longestStopMs()).toBeLessThanOrEqual(100)
})

test('a long suspect is joined by others once it has run for as long as when its engine ended', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  engines.crashed(['suspect', 'other'], 3_000)
  const suspect = engines.send('suspect', 60_000)
  const short = shortCalls(engines)
  engines.pass(20_000, short.each)
  expect(suspect.aloneUntil - suspect.startedAt).toBe(4_000)
  expect(short.longestStopMs()).toBeLessThanOrEqual(4_100)
})

test('a request that ended an engine alone runs alone when the streams have ended, and stops nobody for long before', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  engines.crashedAlone('suspect')
  engines.send('stream', 12_000)
  const suspect = engines.send('suspect', 3_000)
  const short = shortCalls(engines)
  engines.pass(30_000, short.each)
  expect(ranAlone(suspect)).toBe(true)
  expect(waitedMs(suspect)).toBeLessThanOrEqual(12_000 + 4 * 2_000)
  expect(short.longestStopMs()).toBeLessThanOrEqual(2_000 + 3_100)
})

test('it runs alone even if streams never leave the engine idle', () => {
  const engines = simulatedEngines({ m: { engines: 1, slots: 8 } })
  engines.crashedAlone('suspect')
  let streams = 0
  const stream = () => void engines.send(`stream${streams++}`, 5_000)
  stream()
  const suspect = engines.send('suspect', 20)
  const short = shortCalls(engines)
  let at = 0
  engines.pass(120_000, () => {
    if (at++ % 25 === 0) stream()
    short.each()
  })
  expect(ranAlone(suspect)).toBe(true)
  expect(waitedMs(suspect)).toBeLessThanOrEqual(100_000)
  expect(short.stopped()).toBeLessThanOrEqual(0.26)
})

/** The second of these begins while others go first, as none of them waits at that moment. */
const suspectInTheTimeOfOthers: [{ ms: number; ranMs: number; isJob: boolean }[], number[], number] = [
  [
    { ms: 3_811, ranMs: 0, isJob: false },
    { ms: 1_042, ranMs: 0, isJob: false },
    { ms: 2_348, ranMs: 1_348, isJob: false },
  ],
  [500],
  1,
]

test('others keep three quarters of the time, and suspects run soon, whatever runs beside them', () => {
  const suspect = fc.record({ ms: fc.integer({ min: 10, max: 5_000 }), ranMs: fc.nat(3_000), isJob: fc.boolean() })
  fc.assert(
    fc.property(
      fc.array(suspect, { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 500, max: 30_000 }), { maxLength: 4 }),
      fc.nat(1),
      (all, streams, strict) => {
        const engines = simulatedEngines({ m: { engines: 1, slots: 10 } })
        for (const [at, { ranMs }] of all.entries()) {
          if (at < strict) engines.crashedAlone(`suspect${at}`)
          else engines.crashed([`suspect${at}`, 'other'], ranMs, `engine${at}`)
        }
        for (const [at, ms] of streams.entries()) engines.send(`stream${at}`, ms)
        const suspects = all.map(({ ms, isJob }, at) => engines.send(`suspect${at}`, ms, { job: isJob }))
        const short = shortCalls(engines)
        engines.pass(120_000, short.each)
        expect(suspects.map(ran)).toEqual(all.map(() => true))
        const mustRunAlone = suspects.slice(0, strict)
        for (const one of mustRunAlone) expect(ranAlone(one)).toBe(true)
        expect(short.answered()).toBeGreaterThan(0.99)
        const longestHoldMs = Math.max(2_000, ...mustRunAlone.map(one => waitedMs(one) / 10))
        expect(short.longestStopMs()).toBeLessThanOrEqual(longestHoldMs + 5_000 + 200)
        expect(short.stopped()).toBeLessThanOrEqual(0.26)
      },
    ),
    { numRuns: 12, examples: [suspectInTheTimeOfOthers] },
  )
})
