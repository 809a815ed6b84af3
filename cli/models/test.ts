import type { Command } from '@commander-js/extra-typings'
import type { TaskRecord } from '../../core/tasks/task.ts'
import type { Streamed, TaskTest } from '../../core/tasks/task-test.ts'
import { type Client, openClient } from '../client/client.ts'
import { loadDeadline, storedSentence, waitOrThrow, withCommands } from '../client/refusal.ts'
import { exitCodes, failureOfThrown, refused } from '../terminal/exit-codes.ts'
import { interruptible } from '../terminal/interruption.ts'
import { withCommon, withExamples } from '../terminal/options.ts'
import { rateText, sizeText } from '../terminal/quantities-text.ts'
import { printable } from '../terminal/styled-line.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { loadModel } from './load.ts'
import { detailOf, modelStatusOf } from './status.ts'

interface Outcome {
  task: string
  result: 'passed' | 'failed' | 'untested'
  /** Why it did not pass, as a sentence. */
  reason: string | null
  latency_ms: number | null
  first_token_ms: number | null
  tokens_per_second: number | null
}

interface Tested {
  model_id: string
  load_seconds: number | null
  memory_bytes: number | null
  tests: Outcome[]
}

/** `infer model test [id]`: sends one test request per task to the running server and checks the answers. */
export function define(command: Command, terminal: Terminal): void {
  const test = withCommon(command)
    .summary('send test requests to every model and check the answers')
    .description(
      'Loads each model and sends it one small request for each of its tasks, with a test image, tone or video where it needs one. Shows whether the answer is correct, the latency, the token rate and the memory of the model. Images, video and speech are made as jobs, which are deleted afterwards; a video may take minutes. Exits with 1 when a test failed.',
    )
    .argument('[id]', 'the model; default: all enabled models')
    .action((id, { dataDir, json }) =>
      interruptible(terminal, async signal => {
        const client = openClient(dataDir)
        const models = await modelsOf(client, id, signal)
        const tested: Tested[] = []
        for (const model of models) tested.push(await testModel(model, client, terminal, signal))
        const failed = tested.some(({ tests }) => tests.some(({ result }) => result === 'failed'))
        if (json) terminal.json({ passed: !failed, models: tested })
        else show(tested, terminal)
        if (failed) terminal.setExitCode(exitCodes.failed)
      }),
    )
  withExamples(test, [
    ['infer model test', 'every model'],
    ['infer model test qwen3-8b --json', 'one model, for a script'],
  ])
}

interface Model {
  id: string
  tasks: string[]
}

async function modelsOf(client: Client, id: string | undefined, signal: AbortSignal): Promise<Model[]> {
  if (id !== undefined) return [{ id, tasks: (await detailOf(client, id, signal)).status.tasks }]
  const { models } = await modelStatusOf(client, signal)
  return models.filter(({ status }) => status !== 'disabled').map(model => ({ id: model.model_id, tasks: model.tasks }))
}

async function testModel(model: Model, client: Client, terminal: Terminal, signal: AbortSignal): Promise<Tested> {
  const tested: Tested = { model_id: model.id, load_seconds: null, memory_bytes: null, tests: [] }
  try {
    tested.load_seconds = (await loadModel(client, model.id, terminal, signal)).seconds
  } catch (thrown) {
    signal.throwIfAborted()
    const reason = failureOfThrown(thrown).message
    tested.tests = model.tasks.map(task => ({ ...unmeasured(task), result: 'failed', reason }))
    return tested
  }
  for (const task of model.tasks) {
    terminal.waiting(`Testing '${model.id}' (${task})`)
    tested.tests.push(await testTask(task, model.id, client, signal))
  }
  terminal.progress('')
  const { engines } = await detailOf(client, model.id, signal)
  tested.memory_bytes = engines.length > 0 ? Math.max(...engines.map(engine => engine.memory_bytes)) : null
  return tested
}

const unmeasured = (task: string): Outcome => ({
  task,
  result: 'untested',
  reason: 'This version of infer does not know the task.',
  latency_ms: null,
  first_token_ms: null,
  tokens_per_second: null,
})

interface SentTest extends TaskTest {
  path: string
}

async function testTask(task: string, model: string, client: Client, signal: AbortSignal): Promise<Outcome> {
  // Loaded only to test, because it loads the records of all tasks.
  const { taskNamed } = await import('../../core/tasks/registry.ts')
  const record = taskNamed(task)
  if (!record) return unmeasured(task)
  const { test, path } = record
  if (!test || path === undefined) return testJob(record, model, client, signal)
  const request: SentTest = { ...test, path }
  const giveUpAt = loadDeadline()
  for (;;) {
    const since = performance.now()
    const passed = () => Math.round((performance.now() - since) * 10) / 10
    try {
      const response = request.stream
        ? await listen(request, model, client, signal, passed)
        : { answer: await client.post(path, test.body(model), signal), firstTokenMs: null, tokensPerSecond: null }
      const reason = faultOf(request, response.answer)
      return {
        task,
        result: reason === null ? 'passed' : 'failed',
        reason,
        latency_ms: passed(),
        first_token_ms: response.firstTokenMs,
        tokens_per_second: response.tokensPerSecond,
      }
    } catch (thrown) {
      signal.throwIfAborted()
      try {
        // It may have been evicted for another model since it was loaded.
        await waitOrThrow(thrown, giveUpAt, { signal })
      } catch {
        return { ...unmeasured(task), result: 'failed', reason: failureOfThrown(thrown).message, latency_ms: passed() }
      }
    }
  }
}

/** Tests a task whose results are files or a transcript, which take longer than a request. */
async function testJob(record: TaskRecord, model: string, client: Client, signal: AbortSignal): Promise<Outcome> {
  const { testByJob } = await import('./test-job.ts')
  const since = performance.now()
  const reason = await testByJob(record, model, client, signal).catch((thrown: unknown) => {
    signal.throwIfAborted()
    return failureOfThrown(thrown).message
  })
  const latency_ms = Math.round((performance.now() - since) * 10) / 10
  return { ...unmeasured(record.id), result: reason === null ? 'passed' : 'failed', reason, latency_ms }
}

function faultOf(request: TaskTest, answer: unknown): string | null {
  try {
    return request.fault(answer) ?? null
  } catch {
    return 'The answer does not have the form of this task.'
  }
}

/** What is read of an event of a chat or a completion. */
interface Chunk {
  choices?: {
    delta?: { content?: string | null; reasoning_content?: string | null }
    text?: string | null
    finish_reason?: string | null
  }[]
  usage?: { completion_tokens: number } | null
  error?: { message: string }
}

function chunkOf(data: string): Chunk {
  try {
    return JSON.parse(data) as Chunk
  } catch (cause) {
    throw refused('worker_error', `An event of the stream does not have the form of this task: ${data.slice(0, 80)}`, {
      cause,
    })
  }
}

async function listen(
  { path, body }: SentTest,
  model: string,
  client: Client,
  signal: AbortSignal,
  passed: () => number,
): Promise<{ answer: Streamed; firstTokenMs: number | null; tokensPerSecond: number | null }> {
  const answer: Streamed = { text: '', finished: false, completionTokens: undefined }
  let firstTokenMs: number | null = null
  let lastTokenMs = 0
  for await (const { data } of client.stream(path, body(model), signal)) {
    if (data === '[DONE]') break
    const { choices = [], usage, error } = chunkOf(data)
    if (error) throw refused('worker_error', withCommands(error.message))
    const [choice] = choices
    const text = (choice?.delta?.reasoning_content ?? '') + (choice?.delta?.content ?? '') + (choice?.text ?? '')
    if (text !== '') {
      firstTokenMs ??= passed()
      lastTokenMs = passed()
      answer.text += text
    }
    if (choice?.finish_reason) answer.finished = true
    if (usage) answer.completionTokens = usage.completion_tokens
  }
  const between = firstTokenMs === null ? 0 : lastTokenMs - firstTokenMs
  const more = (answer.completionTokens ?? 0) - 1
  return { answer, firstTokenMs, tokensPerSecond: between > 0 && more > 0 ? (more * 1_000) / between : null }
}

function show(tested: readonly Tested[], terminal: Terminal): void {
  const { paint } = terminal
  const colours = { passed: paint.good, failed: paint.bad, untested: paint.faint }
  const milliseconds = (value: number | null) => (value === null ? '-' : `${Math.round(value)} ms`)
  if (tested.length === 0) return terminal.remark('No model is offered. Add one with: infer model add')
  terminal.table(
    ['model', 'task', 'result', 'latency', 'first token', 'tokens/s', 'memory', 'note'],
    tested.flatMap(({ model_id, memory_bytes, tests }) =>
      tests.map(one => [
        printable(model_id),
        one.task,
        colours[one.result](one.result),
        milliseconds(one.latency_ms),
        milliseconds(one.first_token_ms),
        one.tokens_per_second === null ? '-' : rateText(one.tokens_per_second),
        memory_bytes === null ? '-' : sizeText(memory_bytes),
        storedSentence(one.reason ?? ''),
      ]),
    ),
  )
}
