import { afterAll, expect, test } from 'vitest'
import { openCpu } from '../../../../core/cpu/cpu.ts'
import { Failure } from '../../../../core/failure.ts'
import { noSlot } from '../../../../core/jobs/no-slot.ts'
import type { StepTask } from '../../../../core/schemas/task.ts'
import { noModelId } from '../../../../core/schemas/task-table.ts'
import type { JobRecord } from '../../../../core/store/store.ts'
import { openStepRunner } from '../../../../core/tasks/steps/run-step.ts'

const cpu = openCpu({ threads: 1 })
afterAll(() => cpu.close())

const report = { progress() {}, log() {} }
const run = (task: StepTask, inputs: object, { maxMs = 20_000, signal = new AbortController().signal } = {}) =>
  openStepRunner(cpu, { maxMs })(
    { task, inputs: JSON.stringify(inputs) } as JobRecord,
    noSlot(noModelId),
    signal,
    report,
  )

/** Each match takes a pass over the rest of the text. */
const slow = { text: 'a'.repeat(1_000_000), pattern: '(?s)a.*z|a', all: true }

test('a step runs in a thread and costs nothing', async () => {
  const { result, usage, price, files } = await run('text/split', { text: 'a b', by: 'characters', size: 2 })
  expect(JSON.parse(result as string)).toEqual({ chunks: ['a ', 'b'], count: 2 })
  expect([usage, price, files]).toEqual([{ inputTokens: 0, outputTokens: 0 }, {}, []])
})

test('a fault of a step is a Failure with its place', async () => {
  await expect(run('text/extract', { text: 'none' })).rejects.toThrow(
    expect.objectContaining({ code: 'invalid_value', param: 'text', retryable: false }) as Error,
  )
})

test('one that takes too long ends with its thread and is not tried again; the next one runs', async () => {
  const ended = run('text/extract', slow, { maxMs: 400 }).catch((thrown: unknown) => thrown)
  // Waits for the only thread.
  expect((await run('text/split', { text: 'next' })).result).toBe('{"chunks":["next"],"count":1}')
  expect(await ended).toMatchObject({ code: 'timeout', retryable: false })
})

test('a cancelled one ends with the reason', async () => {
  const abort = new AbortController()
  const ended = run('text/extract', slow, { signal: abort.signal }).catch((thrown: unknown) => thrown)
  const why = new Failure('cancelled', 'The job was cancelled.')
  abort.abort(why)
  expect(await ended).toBe(why)
})

test.each([
  ['too many values', `{"input":[${'{},'.repeat(10_000_000)}1],"steps":[{"count":true}]}`],
  ['too long inputs', JSON.stringify({ text: 'x'.repeat(33 << 20) })],
])(
  '%s fail with a sentence, and the process goes on',
  async (_, inputs) => {
    const job = { task: 'json/select', inputs } as JobRecord
    const signal = new AbortController().signal
    const run = openStepRunner(cpu)(job, noSlot(noModelId), signal, report)
    expect(await run.catch((thrown: Failure) => thrown.code)).toBe('payload_too_large')
  },
  30_000,
)
