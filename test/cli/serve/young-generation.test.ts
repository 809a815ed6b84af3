import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'

/** Prints the size of the young generation: at first, after a start that keeps all it makes, and under load after it. */
const script = `
import { getHeapSpaceStatistics } from 'node:v8'
import { growAsNeeded, startSmall } from ${JSON.stringify(join(import.meta.dirname, '../../../cli/serve/young-generation.ts'))}
const size = () => getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size
const kept = []
const load = () => { for (let i = 0; i < 300_000; i++) kept.push({ i, list: [i] }) }
startSmall()
const first = size()
load()
const started = size()
growAsNeeded()
const timer = setInterval(() => {
  load()
  if (size() <= started && kept.length < 20_000_000) return
  clearInterval(timer)
  console.log(JSON.stringify([first, started, size()]))
}, 300)`

test('the young generation does not grow while the server starts, and does under load', () => {
  const flags = ['--max-semi-space-size=8', '--input-type=module', '--eval', script]
  const [first, started, loaded] = JSON.parse(execFileSync(process.execPath, flags, { encoding: 'utf8' })) as number[]
  // Of its two halves the second is there from the first collection on.
  expect(started).toBeLessThanOrEqual(2 * first!)
  expect(loaded).toBeGreaterThan(started!)
})
