import { expect, test } from 'vitest'
import type { Lease } from '../../../core/models/fleet.ts'
import { type Task, tasks } from '../../../core/schemas/task.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { openTaskRunner } from '../../../core/tasks/run.ts'
import type { RunJob, RunResult } from '../../../core/tasks/run-job.ts'
import type { RunnerName } from '../../../core/tasks/task.ts'
import { done, runner } from '../jobs/_runs.ts'

const report = { progress() {}, log() {} }
const signal = new AbortController().signal
const job = (task: Task) => ({ task, modelId: 'm' }) as JobRecord

const runnerNames: RunnerName[] = ['text', 'speech', 'transcription', 'generation']
const runnerNameOf = (task: Task): RunnerName =>
  task.startsWith('slug/') || task.startsWith('std/image')
    ? 'generation'
    : task === 'std/audio-speech'
      ? 'speech'
      : task.startsWith('std/audio')
        ? 'transcription'
        : 'text'

function opened(one: (name: RunnerName) => RunJob, used: unknown[] = []) {
  const runners = Object.fromEntries(runnerNames.map(name => [name, one(name)])) as Record<RunnerName, RunJob>
  return openTaskRunner(runners, (...all) => used.push(all))
}

test.each(tasks.map(task => [task, runnerNameOf(task)] as const))(
  'a job of %s is run by the runner of %s, and counted when it has ended well',
  async (task, name) => {
    const ran: string[] = []
    const used: unknown[] = []
    const run = opened(
      one =>
        runner(async () => {
          ran.push(one)
          return done
        }),
      used,
    )
    await run(job(task), {} as Lease, signal, report)
    expect(ran).toEqual([name])
    expect(used).toEqual([['m', done.usage]])
  },
)

test('the files of a run are removed by its own runner', async () => {
  const undone: Record<string, RunResult[]> = { text: [], speech: [], transcription: [], generation: [] }
  const run = opened(name => runner(async () => done, undone[name]))
  await run.undo(done, job('slug/text-to-image'))
  expect(undone).toEqual({ text: [], speech: [], transcription: [], generation: [done] })
})
