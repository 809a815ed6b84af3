import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Failure } from '../../../core/failure.ts'
import { openPromptExpansion } from '../../../core/jobs/prompt-expansion.ts'
import { openLog } from '../../../core/log.ts'
import { deferredUntil, type JobRecord, type Resumption } from '../../../core/store/store.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** Held jobs in memory, and a chat model that answers when the test says so. */
function setUp({
  model = 'writer',
  deferred = [] as [organization: string, id: string][],
  group = '',
  relayed = false,
} = {}) {
  const rows = new Map<string, JobRecord>()
  const hold = (organizationId: string, id: string) => {
    const inputs = JSON.stringify({ prompt: 'a cat', seed: 1, prompt_expansion: { group: group || id, not_before: 7 } })
    const job = {
      organizationId,
      id,
      status: 'pending',
      notBefore: deferredUntil,
      task: 'slug/text-to-image',
      inputs,
      relayed,
    }
    rows.set(id, job as unknown as JobRecord)
    return { organizationId, id }
  }
  for (const one of deferred) hold(...one)
  /** Of each whose fallbacks were asked for: whether its request was passed on. */
  const requesters: boolean[] = []
  const begun: string[] = []
  const answers: PromiseWithResolvers<string>[] = []
  const resumed = new Map<string, Resumption>()
  const jobs = {
    find: async (_: string, id: string) => rows.get(id),
    deferred: async () => [...rows.values()].map(({ organizationId, id }) => ({ organizationId, id })),
    async resume({ id }: { id: string }, how: Resumption) {
      resumed.set(id, how)
      rows.delete(id)
    },
    calls: {
      async run(_: unknown, attempt: () => Promise<unknown>) {
        await attempt()
        return { end: { how: 'completed' } }
      },
    },
  }
  const rewriting = {
    async prepare({ sender }: { sender: { jobId: string } }) {
      begun.push(sender.jobId)
      const answer = Promise.withResolvers<string>()
      answers.push(answer)
      const prepared = {
        prompts: [] as string[],
        attempt: async () => void (prepared.prompts = [await answer.promise]),
      }
      return prepared
    },
  }
  const expansion = openPromptExpansion({
    jobs: jobs as never,
    admission: {
      admitForJob: () => ({ model: { id: model } }),
      fallbacksFor({ isRelayed = false }: { isRelayed?: boolean }) {
        requesters.push(isRelayed)
        return []
      },
    } as never,
    requesterOf: async () => ({}) as never,
    rewriting: rewriting as never,
    model: model || undefined,
    log: openLog('error', () => {}),
  })
  const settle = () => vi.advanceTimersByTimeAsync(0)
  return { expansion, hold, begun, answers, resumed, rows, requesters, settle }
}

const many = (organization: string, count: number): [string, string][] =>
  Array.from({ length: count }, (_, at) => [organization, `${organization}${at}`])

test('deferred jobs of an earlier run are taken up, eight at a time, and organizations take turns', async () => {
  const { expansion, begun, answers, settle } = setUp({ deferred: [...many('a', 20), ...many('b', 2)] })
  await expansion.resume()
  await settle()
  expect(begun).toHaveLength(8)
  answers[0]!.resolve('x')
  await settle()
  expect(begun).toHaveLength(9)
  for (const answer of answers) answer.resolve('x')
  await settle()
  expect(begun.slice(0, 12).filter(id => id.startsWith('b'))).toEqual(['b0', 'b1'])
})

test('the new prompt is stored with the original one and the earliest start', async () => {
  const { expansion, answers, resumed, settle } = setUp({ deferred: [['a', 'one']] })
  await expansion.resume()
  await settle()
  answers[0]!.resolve('a red cat')
  await settle()
  expect(resumed.get('one')).toEqual({
    inputs: JSON.stringify({ prompt: 'a red cat', seed: 1, original_prompt: 'a cat' }),
    notBefore: 7,
  })
})

test.each([true, false])('the fallbacks of the chat model are those of work that was passed on: %s', async relayed => {
  const { expansion, requesters, answers, settle } = setUp({ deferred: [['a', 'one']], relayed })
  await expansion.resume()
  await settle()
  answers[0]!.resolve('x')
  await settle()
  expect(requesters).toEqual([relayed])
})

test('jobs of one group share one rewrite', async () => {
  const { expansion, begun, answers, resumed, settle } = setUp({ deferred: many('a', 3), group: 'same' })
  await expansion.resume()
  await settle()
  answers[0]!.resolve('x')
  await settle()
  expect([begun.length, resumed.size]).toEqual([1, 3])
})

test('a model that cannot answer now is waited for, and is asked again', async () => {
  const { expansion, begun, answers, resumed, settle } = setUp({ deferred: [['a', 'one']] })
  await expansion.resume()
  for (let at = 0; at < 5; at++) {
    await settle()
    answers[at]!.reject(new Failure('no_capacity', 'Busy.', { retryAfterMs: 2_000 }))
    await vi.advanceTimersByTimeAsync(2_000)
  }
  expect([begun.length, resumed.size]).toEqual([6, 0])
  answers[5]!.resolve('x')
  await settle()
  expect(resumed.get('one')).toHaveProperty('inputs')
})

test('an engine that fails three times fails the job, with the reason', async () => {
  const { expansion, begun, answers, resumed, settle } = setUp({ deferred: [['a', 'one']] })
  await expansion.resume()
  for (let at = 0; at < 3; at++) {
    await settle()
    answers[at]!.reject(new Failure('worker_error', 'Broken.'))
    await vi.advanceTimersByTimeAsync(10_000)
  }
  expect(begun).toHaveLength(3)
  expect(resumed.get('one')).toMatchObject({
    error: { code: 'worker_error', attempt: 3, message: expect.stringContaining('could not be rewritten: Broken.') },
  })
})

test.each([
  ['a failure that no repetition helps against', new Failure('model_not_found', 'Gone.')],
  ['a model that can never be loaded', new Failure('no_capacity', 'Too large.', { final: true })],
])('%s fails the job at once', async (_, failure) => {
  const { expansion, begun, answers, resumed, settle } = setUp({ deferred: [['a', 'one']] })
  await expansion.resume()
  await settle()
  answers[0]!.reject(failure)
  await settle()
  expect([begun.length, resumed.get('one')]).toEqual([1, { error: expect.objectContaining({ code: failure.code }) }])
})

test('without a configured model the deferred jobs of an earlier run fail', async () => {
  const { expansion, resumed, settle } = setUp({ model: '', deferred: [['a', 'one']] })
  await expansion.resume()
  await settle()
  expect(resumed.get('one')).toMatchObject({ error: { message: expect.stringContaining("Set 'prompt_rewriting'") } })
})

test('a job that was cancelled meanwhile is not rewritten', async () => {
  const { expansion, hold, begun, rows, settle } = setUp()
  const job = hold('a', 'one')
  rows.set('one', { ...rows.get('one')!, status: 'cancelled' })
  expansion.add(job)
  await settle()
  expect(begun).toEqual([])
})

test('close ends the waits, and leaves deferred jobs deferred', async () => {
  const { expansion, answers, resumed, settle } = setUp({ deferred: many('a', 2) })
  await expansion.resume()
  await settle()
  answers[0]!.reject(new Failure('no_capacity', 'Busy.', { retryAfterMs: 60_000 }))
  await settle()
  const closed = expansion.close()
  answers[1]!.reject(new Failure('shutting_down', 'Stops.'))
  await closed
  expect(resumed.size).toBe(0)
})

test('a prompt that comes after the end leaves its job deferred, for the server that comes next', async () => {
  const { expansion, answers, resumed, rows, settle } = setUp({ deferred: [['a', 'one']] })
  await expansion.resume()
  await settle()
  const closed = expansion.close()
  answers[0]!.resolve('x')
  await closed
  expect([resumed.size, rows.size]).toEqual([0, 1])
})
