import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endlessWait } from '../../../core/dag/endless-wait.ts'

/** An unfinished execution: its workflow, the execution around it, and whether it waits for others of its workflow. */
interface Execution {
  workflow: string
  within?: number
  queued?: boolean
}

const wait = (workflow: string, around: number[], limits: Record<string, number>, all: readonly Execution[]) =>
  endlessWait(workflow, new Set(around), {
    limitOf: name => limits[name] ?? null,
    startedOf: name => [...all.keys()].filter(at => all[at]!.workflow === name && !all[at]!.queued),
    nestedIn: number =>
      all.flatMap(({ workflow: workflowId, within, queued = false }, at) =>
        within === number ? [{ number: at, workflowId, queued }] : [],
      ),
  })

const a: Execution = { workflow: 'a' }
const b: Execution = { workflow: 'b' }
const c: Execution = { workflow: 'c' }
const queued = (workflow: string, within: number): Execution => ({ workflow, within, queued: true })

test.for<[title: string, limits: Record<string, number>, all: Execution[], awaited: string[] | undefined]>([
  ['a workflow whose execution can end', { b: 1 }, [a, b], undefined],
  ['two that run each other', { a: 1, b: 1 }, [a, b, queued('a', 1)], ['a']],
  ['one of them without a limit', { b: 1 }, [a, b, queued('a', 1)], undefined],
  ['another execution can end', { a: 1, b: 2 }, [a, b, b, queued('a', 1)], undefined],
  ['none can', { a: 1, b: 2 }, [a, b, b, queued('a', 1), queued('a', 2)], ['a']],
  ['three in a circle', { a: 1, b: 1, c: 1 }, [a, b, c, queued('c', 1), queued('a', 2)], ['c', 'a']],
  ['what waits is deeper', { a: 1, b: 1 }, [a, b, { workflow: 'd', within: 1 }, queued('a', 2)], ['a']],
  ['more run than the limit', { a: 1, b: 1 }, [a, b, { workflow: 'b', within: 1 }, queued('a', 1)], ['a']],
  ['one that runs within another of its workflow', { a: 1, b: 1 }, [a, b, { workflow: 'b', within: 1 }], undefined],
])('%s', ([, limits, all, awaited]) => {
  expect(wait('b', [0], limits, all)).toEqual(awaited)
})

test('the answer is that of ending what can end until nothing can', () => {
  const names = ['a', 'b', 'c']
  const drawn = fc.array(
    fc.record({
      workflow: fc.constantFrom(...names),
      within: fc.option(fc.nat(9), { nil: undefined }),
      queued: fc.boolean(),
    }),
    { minLength: 2, maxLength: 10, size: 'max' },
  )
  const limit = fc.integer({ min: 1, max: 3 })
  let endless = 0
  fc.assert(
    fc.property(drawn, fc.tuple(limit, limit, limit), (given, most) => {
      const limits = Object.fromEntries(names.map((name, at) => [name, most[at]!]))
      const all = given.map(({ workflow, within, queued: waits }, at): Execution => {
        const outer = within !== undefined && within < at && !given[within]!.queued ? { within } : {}
        return { workflow, queued: waits && at > 0, ...outer }
      })
      // The new one is within the first.
      const ends = new Set<number>()
      const room = (name: string) =>
        all.filter((one, at) => one.workflow === name && !one.queued && !ends.has(at)).length < limits[name]!
      for (let before = -1; before !== ends.size; ) {
        before = ends.size
        for (const [at, { workflow, queued: waits }] of all.entries()) {
          const inner = [...all.keys()].filter(other => all[other]!.within === at)
          if (at > 0 && inner.every(other => ends.has(other)) && (!waits || room(workflow))) ends.add(at)
        }
      }
      for (const name of names) {
        const found = wait(name, [0], limits, all)
        expect(found === undefined).toBe(room(name))
        if (found) endless++
      }
    }),
    { numRuns: 500 },
  )
  expect(endless).toBeGreaterThan(50)
})
