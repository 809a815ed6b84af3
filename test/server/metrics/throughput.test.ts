import { expect, test } from 'vitest'
import { openThroughput } from '../../../server/metrics/throughput.ts'

function inSeconds() {
  let now = 0
  const throughput = openThroughput({ windowMs: 5_000, now: () => now })
  throughput.close()
  return {
    throughput,
    pass: (seconds: number, each: () => void = () => {}) => {
      for (let at = 0; at < seconds; at++) {
        each()
        now += 1_000
        throughput.sample()
      }
    },
  }
}

test('a steady stream has its rate, and none once it has been silent for the length of the window', () => {
  const { throughput, pass } = inSeconds()
  pass(3, () => throughput.meter('a').output++)
  expect(throughput.rate('a')).toEqual({ input: 0, output: 1 })
  pass(20, () => (throughput.meter('a').output += 40))
  expect(throughput.rate('a').output).toBe(40)
  pass(4)
  expect(throughput.rate('a').output).toBe(8)
  pass(1)
  expect(throughput.rate('a').output).toBe(0)
})

test('a burst counts at once, in the first second too', () => {
  const { throughput } = inSeconds()
  throughput.used('a', { inputTokens: 20, outputTokens: 3 })
  expect(throughput.rate('a')).toEqual({ input: 20, output: 3 })
  expect(throughput.rate('b')).toEqual({ input: 0, output: 0 })
})
