import { expect, test } from 'vitest'
import type { Lease } from '../../../core/fleet.ts'
import { imageTasks, type Task, tasks } from '../../../core/schemas/task.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { openTaskRunner } from '../../../core/tasks/run.ts'
import type { Ran } from '../../../core/tasks/run-job.ts'
import { done, runner } from '../jobs/_runs.ts'

const report = { progress() {}, log() {} }
const signal = new AbortController().signal

const painted = (task: Task) => task.startsWith('slug/') || imageTasks.some(one => one === task)
test.each(tasks.map(task => [task, painted(task) ? 'generation' : 'text'] as const))(
  'a job of %s is run by the runner of %s, and counted when it has ended well',
  async (task: Task, kind) => {
    const ran: string[] = []
    const used: unknown[] = []
    const one = (name: string) =>
      runner(async () => {
        ran.push(name)
        return done
      })
    const run = openTaskRunner({
      text: one('text'),
      generation: one('generation'),
      used: (...all) => used.push(all),
    })
    await run({ task, modelId: 'm' } as JobRecord, {} as Lease, signal, report)
    expect(ran).toEqual([kind])
    expect(used).toEqual([['m', done.usage]])
  },
)

test('what is taken back is what a generation left on the disk', async () => {
  const undone: Ran[] = []
  const never = runner(async () => {
    throw new Error('It ran')
  })
  const run = openTaskRunner({ text: never, generation: runner(async () => done, undone), used: () => {} })
  await run.undo(done, {} as JobRecord)
  expect(undone).toEqual([done])
})
