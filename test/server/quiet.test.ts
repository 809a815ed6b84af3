import { expect, test } from 'vitest'
import { openQuiet } from '../../server/quiet.ts'

test('memory is given back when nobody waits, and not again until a load has made it large', () => {
  const activity = { running: 0, taken: 0 }
  let young = 16 << 20
  let collected = 0
  const memory = {
    youngBytes: () => young,
    collect() {
      collected++
      young = 1 << 20
    },
  }
  const quiet = openQuiet({ activity: () => activity, memory })
  const after = (...steps: (() => void)[]) =>
    steps.map(step => {
      step()
      quiet.look()
      return collected
    })
  const nothing = () => {}
  const begins = () => {
    activity.running++
    activity.taken++
    young = 16 << 20
  }
  const ends = () => activity.running--
  const scraped = () => activity.taken++
  expect(after(nothing, nothing, nothing)).toEqual([0, 1, 1])
  expect(after(begins, nothing, nothing, ends, nothing)).toEqual([1, 1, 1, 2, 2])
  expect(after(scraped, nothing, scraped, nothing)).toEqual([2, 2, 2, 2])
  quiet.close()
})
