import { expect, test } from 'vitest'
import type { Lease } from '../../../core/models/fleet.ts'
import { type Task, tasks } from '../../../core/schemas/task.ts'
import type { JobRecord } from '../../../core/store/store.ts'
import { openTaskRunner, type RunTask } from '../../../core/tasks/run-job.ts'
import type { RunnerName } from '../../../core/tasks/task.ts'
import { done as ended } from '../jobs/_runs.ts'

const { cost: _, ...ran } = ended
const done = { ...ran, price: { input_per_million_tokens: 1, output_per_million_tokens: 2, per_gpu_second: 0.5 } }
const lease = { used: () => ({ gpuMs: 40.4, energyMj: null }) } as Lease
const runner = (run: () => Promise<typeof done>, undone: unknown[] = []): RunTask =>
  Object.assign(() => run(), { undo: async (one: object) => void undone.push(one) })

const report = { progress() {}, log() {} }
const signal = new AbortController().signal
const job = (task: Task) => ({ task, modelId: 'm' }) as JobRecord

const runnerNames: RunnerName[] = ['text', 'speech', 'transcription', 'generation', 'step', 'wait']
const runnerNameOf = (task: Task): RunnerName =>
  ['text/', 'json/', 'workflow/'].some(family => task.startsWith(family))
    ? 'step'
    : task.startsWith('wait/')
      ? 'wait'
      : task.startsWith('slug/') || task.startsWith('std/image')
        ? 'generation'
        : task === 'std/audio-speech'
          ? 'speech'
          : task.startsWith('std/audio')
            ? 'transcription'
            : 'text'

function opened(one: (name: RunnerName) => RunTask, used: unknown[] = []) {
  const runners = Object.fromEntries(runnerNames.map(name => [name, one(name)])) as Record<RunnerName, RunTask>
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
    const { usage, cost } = await run(job(task), lease, signal, report)
    expect(ran).toEqual([name])
    expect(usage).toMatchObject({ inputTokens: 1, outputTokens: 2, gpuMs: 40, energyMj: null })
    // 1 input token, 2 output tokens of twice the price, 40 ms of half a unit a second.
    expect(cost).toBe(1 + 4 + 20_000)
    expect(used).toEqual([['m', usage]])
  },
)

test('the files of a run are removed by its own runner', async () => {
  const undone: Record<string, unknown[]> = { text: [], speech: [], transcription: [], generation: [] }
  const run = opened(name => runner(async () => done, undone[name]))
  await run.undo(ended, job('slug/text-to-image'))
  expect(undone).toEqual({ text: [], speech: [], transcription: [], generation: [ended] })
})
