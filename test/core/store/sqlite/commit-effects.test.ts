import { expect, test } from 'vitest'
import { openCommitEffects } from '../../../../core/store/sqlite/commit-effects.ts'

const change = (id: string, more: { ended?: boolean; timeoutAt?: number } = {}) => ({
  id,
  ended: false,
  organizationId: 'org_1',
  timeoutAt: undefined,
  next: () => [],
  ...more,
})

test('a mark reverts what was changed after it, and nothing before', () => {
  const effects = openCommitEffects()
  effects.executionChanged(change('before', { timeoutAt: 7 }))
  effects.add('released', 'job_before' as never)
  const outer = effects.mark()
  effects.executionChanged(change('between'))
  const inner = effects.mark()
  effects.executionChanged(change('before', { ended: true }))
  effects.executionChanged(change('after'))
  effects.add('released', 'job_after' as never)
  inner()
  effects.executionChanged(change('between', { ended: true }))
  outer()
  effects.executionChanged(change('last'))
  expect(effects.take()).toMatchObject({
    executions: [{ id: 'before', ended: false, timeoutAt: 7 }, { id: 'last' }],
    released: ['job_before'],
  })
  expect(effects.take()).toBeUndefined()
})

test('a mark for each command of a commit costs the same however many executions have changed', () => {
  const effects = openCommitEffects()
  const since = performance.now()
  for (let at = 0; at < 20_000; at++) {
    effects.mark()
    effects.executionChanged(change(`execution ${at}`))
  }
  // 25 ms; 10 s where each mark copies what has changed.
  expect(performance.now() - since).toBeLessThan(1_500)
  effects.forget()
})
