import { afterAll, beforeAll, expect, test } from 'vitest'
import { Model } from '../../../../core/models/model.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

/** Nodes of workflows whose tasks need no model. */
let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Node {
  node_id: string
  status: string
  cached: boolean
  attempts: number
  job_id: string
  model_id: string
  result: Record<string, unknown> | null
  error: { code: string; message: string } | null
}
interface Execution {
  id: string
  status: string
  nodes: Node[]
}

async function run(nodes: Record<string, object>, input_params: object = {}): Promise<Record<string, Node>> {
  const begun = await app.fetch('/api/workflows/run', { body: { dag: { nodes }, input_params } })
  const body = (await begun.json()) as { execution: Execution }
  expect([begun.status, body]).toEqual([202, expect.anything()])
  const ended = await app.fetch(`/api/workflow-executions/${body.execution.id}?wait=60`)
  const { execution } = (await ended.json()) as { execution: Execution }
  return Object.fromEntries(execution.nodes.map(node => [node.node_id, node]))
}

const split = (text: string, more: object = {}) => ({
  task: 'text/split',
  inputs: { text, by: 'lines', size: 1, ...more },
})
const chat = (content: string) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
})

test('a text is split, and a model gets a chunk of it', async () => {
  const { parts, reply } = await run(
    { parts: split('${input.text}'), reply: chat('${nodes.parts.result.chunks[1]}') },
    { text: 'first\nsecond' },
  )
  expect(parts).toMatchObject({ status: 'completed', model_id: '(none)', result: { chunks: ['first', 'second'] } })
  expect(reply!.status).toBe('completed')
  const answer = await app.fetch(`/api/jobs/${parts!.job_id}`)
  const free = { input_tokens: 0, output_tokens: 0, gpu_ms: 0 }
  expect(await answer.json()).toMatchObject({ task: 'text/split', status: 'completed', cost: 0, usage: free })
})

test('the same work is done once', async () => {
  const before = await run({ parts: split('once\nonly') })
  const after = await run({ parts: split('once\nonly') })
  expect(after.parts).toMatchObject({ cached: true, job_id: before.parts!.job_id })
})

test('a template joins lists, also those of large results', async () => {
  const text = Array.from({ length: 3_000 }, (_, at) => `${at} ${'x'.repeat(100)}`).join('\n')
  const { whole, within, large } = await run(
    {
      few: split('a\nb'),
      many: split('${input.text}', { max_chunks: 5_000 }),
      whole: { task: 'text/template', inputs: { template: '${nodes.few.result.chunks}', separator: ', ' } },
      within: {
        task: 'text/template',
        inputs: { template: 'Both:\n- ${nodes.few.result.chunks}\n${input.none}.', separator: '\n- ' },
      },
      large: { task: 'text/template', inputs: { template: '<${nodes.many.result.chunks}>', separator: '|' } },
    },
    { text, none: '${input.text}' },
  )
  expect(whole!.result).toEqual({ text: 'a, b' })
  // What a value contains is no reference.
  expect(within!.result).toEqual({ text: 'Both:\n- a\n- b\n${input.text}.' })
  const answer = await app.fetch(`/api/jobs/${large!.job_id}`)
  const { result } = (await answer.json()) as { result: { text: string } }
  expect(result.text).toBe(`<${text.replaceAll('\n', '|')}>`)
})

test('a text is made, JSON is taken out of it, and a part of that is selected', async () => {
  const { found, best } = await run(
    {
      said: {
        task: 'text/template',
        inputs: { template: 'Sure! ```json\n{"items": [{"n": ${input.n}}, {"n": 3},]}\n``` Anything else?' },
      },
      found: {
        task: 'text/extract',
        inputs: {
          text: '${nodes.said.result.text}',
          schema: { type: 'object', required: ['items'], properties: { items: { type: 'array' } } },
        },
      },
      best: {
        task: 'json/select',
        inputs: {
          input: '${nodes.found.result.value.items}',
          steps: [
            { filter: { path: 'n', greater_than: '${input.least}' } },
            { sort_by: 'n', descending: true },
            { path: '[0].n' },
          ],
        },
      },
    },
    { n: 7, least: 2 },
  )
  expect(found!.result).toEqual({ value: { items: [{ n: 7 }, { n: 3 }] } })
  expect(best!.result).toEqual({ value: 7 })
})

test('a template that grows too large fails', async () => {
  const references = '${input.text}'.repeat(20)
  const { much } = await run(
    { much: { task: 'text/template', inputs: { template: references } } },
    { text: 'x'.repeat(100_000) },
  )
  expect(much!.error).toMatchObject({ code: 'invalid_value', message: expect.stringContaining('more than 1 MiB') })
})

test('what is certain to fail is found before anything runs', async () => {
  const nodes = {
    pattern: { task: 'text/extract', inputs: { text: 'a', pattern: 'a(?=b)' } },
    schema: { task: 'text/extract', inputs: { text: 'a', schema: { type: 'object', patternProperties: {} } } },
    steps: { task: 'json/select', inputs: { input: [], steps: [{ where: 1 }, { path: 'a b' }] } },
  }
  const answer = await app.fetch('/api/workflows/validate', { body: { dag: { nodes } } })
  const { diagnostics } = (await answer.json()) as { diagnostics: { type_issues: { node_id: string; path: string }[] } }
  expect(diagnostics.type_issues.map(({ node_id, path }) => `${node_id} ${path}`)).toEqual([
    'pattern inputs.pattern',
    'schema inputs.schema',
    'steps inputs.steps[0].where',
    'steps inputs.steps[0]',
    'steps inputs.steps[1].path',
  ])
})

test('a fault of the inputs fails the node with a sentence, and on_error decides what follows', async () => {
  const { parts, reply } = await run({
    parts: { ...split('a\nb\nc', { max_chunks: 2 }), on_error: 'continue' },
    reply: chat('still ${nodes.parts.result}'),
  })
  expect(parts).toMatchObject({
    status: 'failed',
    attempts: 1,
    error: {
      code: 'invalid_value',
      message: "The text makes more than 2 chunks. Set a larger 'size' or 'max_chunks'.",
    },
  })
  expect(reply!.status).toBe('completed')
})

test('many of them run side by side, and all end', async () => {
  const names = Array.from({ length: 40 }, (_, at) => `n${at}`)
  const nodes = await run(Object.fromEntries(names.map(name => [name, split(`many\n${name}`)])))
  expect(names.map(name => nodes[name]!.status)).toEqual(names.map(() => 'completed'))
})

test('they are tasks of nodes only, and models cannot have them', async () => {
  const asJob = await app.fetch('/api/jobs', {
    body: { task: 'text/split', model_id: 'fake', inputs: { text: 'a' } },
  })
  expect([asJob.status, await asJob.json()]).toMatchObject([
    400,
    { error: { code: 'unsupported_task', message: expect.stringContaining('only as a node of a workflow') } },
  ])
  const { tasks } = (await (await app.fetch('/api/tasks')).json()) as { tasks: { id: string; needs_model: boolean }[] }
  expect(tasks.filter(one => !one.needs_model).map(({ id }) => id)).toEqual([
    'text/template',
    'text/split',
    'text/extract',
    'json/select',
    'wait/approval',
    'wait/event',
    'wait/until',
    'workflow/run',
  ])
  const { issues } = Model.safeParse({ id: 'm', tasks: ['text/split'] }).error!
  expect(issues.map(({ path }) => path)).toEqual([['tasks', 0]])
})

test('a model of such a node is ignored with a warning, and a wrong input is an error', async () => {
  const nodes = { parts: { ...split('a', { sise: 1 }), model_id: 'fake' } }
  const answer = await app.fetch('/api/workflows/validate', { body: { dag: { nodes } } })
  expect(await answer.json()).toMatchObject({
    diagnostics: {
      warnings: [{ code: 'unknown_field', severity: 'warning', path: 'model_id' }],
      type_issues: [{ code: 'unknown_input', suggestion: 'size' }],
    },
  })
})

test('a step that runs is cancelled with its execution, and its thread serves the next one', async () => {
  // Each match takes a pass over the rest of the text.
  const slow = (pattern: string) => ({ task: 'text/extract', inputs: { text: '${input.text}', pattern, all: true } })
  const dag = { nodes: { one: slow('(?s)a.*y|a'), two: slow('(?s)a.*z|a') } }
  const input_params = { text: 'a'.repeat(500_000) }
  const begun = await app.fetch('/api/workflows/run', { body: { dag, input_params } })
  const { id } = ((await begun.json()) as { execution: Execution }).execution
  const read = async () => {
    const answer = await app.fetch(`/api/workflow-executions/${id}`)
    const { execution } = (await answer.json()) as { execution: Execution }
    return [execution.status, ...execution.nodes.map(({ status }) => status)]
  }
  await expect.poll(read, { interval: 20 }).toEqual(['running', 'running', 'running'])
  await app.fetch(`/api/workflow-executions/${id}/cancel`, { method: 'POST' })
  expect(await read()).toEqual(['cancelled', 'cancelled', 'cancelled'])
  expect((await run({ next: split('after') })).next!.status).toBe('completed')
})

test('the timeout of a node ends a step and its thread, however short it is', async () => {
  const slow = (pattern: string, timeout: number) => ({
    task: 'text/extract',
    inputs: { text: '${input.text}', pattern, all: true },
    timeout,
    on_error: 'continue',
  })
  const nodes = { long: slow('(?s)a.*x|a', 0.3), short: slow('(?s)a.*w|a', 0.0001) }
  const { long, short } = await run(nodes, { text: 'a'.repeat(500_000) })
  expect(long).toMatchObject({
    error: { code: 'timeout', message: expect.stringContaining('ran for 0.3 s') as string },
  })
  expect([long!.attempts, short!.error?.code]).toEqual([1, 'timeout'])
  expect((await run({ next: split('after a timeout') })).next!.status).toBe('completed')
})
