import { expect, test } from 'vitest'
import type { UsageSums } from '../../../core/store/usage-records.ts'
import { openLoadHistory } from '../../../server/metrics/history.ts'
import type { ThroughputMeter } from '../../../server/metrics/throughput.ts'

/** A history with counters and a clock that the test sets. */
function open() {
  const used = new Map<string, UsageSums>()
  const tokens = new Map<string, ThroughputMeter>()
  const clock = { now: 1_000_000 }
  const history = openLoadHistory({
    used: () => used,
    throughput: { totals: () => tokens },
    now: () => clock.now,
  })
  return { history, used, tokens, clock }
}
const counts = (requests: number, jobs = 0, failed = 0) => ({ requests, jobs, failed }) as UsageSums

test('an interval has the differences of the counters, and only of models that did something', () => {
  const { history, used, tokens, clock } = open()
  used.set('old', counts(5)).set('busy', counts(1, 2, 1))
  tokens.set('busy', { input: 30, output: 70 })
  clock.now += 10_000
  history.sample()
  used.set('busy', counts(2, 2, 1))
  clock.now += 12_000
  history.sample()
  history.close()
  expect(history.since(0)).toEqual([
    {
      at: 1_010_000,
      elapsedMs: 10_000,
      models: [
        { modelId: 'old', requests: 5, failed: 0, inputTokens: 0, outputTokens: 0 },
        { modelId: 'busy', requests: 3, failed: 1, inputTokens: 30, outputTokens: 70 },
      ],
    },
    {
      at: 1_022_000,
      elapsedMs: 12_000,
      models: [{ modelId: 'busy', requests: 1, failed: 0, inputTokens: 0, outputTokens: 0 }],
    },
  ])
})

test('only later intervals are returned, and an hour is kept', () => {
  const { history, clock } = open()
  for (let at = 0; at < 400; at++) {
    clock.now += 10_000
    history.sample()
  }
  history.close()
  expect(history.since(0)).toHaveLength(360)
  expect(history.since(clock.now)).toEqual([])
  expect(history.since(clock.now - 10_000).map(({ at }) => at)).toEqual([clock.now])
})
