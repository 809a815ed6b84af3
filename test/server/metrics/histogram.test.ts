import { Histogram, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { CountedHistogram } from '../../../server/metrics/histogram.ts'

const facts = { name: 'took_seconds', help: 'How long it took.', buckets: [0.1, 1, 10], labelNames: ['model' as const] }

test('writes what the histogram of prom-client writes', async () => {
  const [ours, theirs] = [new Registry(), new Registry()]
  const counted = new CountedHistogram(facts)
  ours.registerMetric(counted)
  const usual = new Histogram({ ...facts, registers: [theirs] })
  for (const [model, ...seconds] of [
    ['a/b', 0, 0.1, 0.11, 1, 5, 10, 10.5, 1_000],
    ['with "quotes" and \\', 0.25],
    ['never'],
  ] as [string, ...number[]][]) {
    const distribution = counted.under({ model })
    for (const one of seconds) {
      distribution.observe(one)
      usual.observe({ model }, one)
    }
    if (seconds.length === 0) usual.zero({ model })
  }
  const lines = (text: string) => text.split('\n').sort()
  expect(lines(await ours.metrics())).toEqual(lines(await theirs.metrics()))
  expect(await ours.metrics()).toContain('took_seconds_bucket{le="+Inf",model="a/b"} 8')
})
