import { expect, test } from 'vitest'
import { Dag } from '../../../core/dag/definition.ts'
import { Failure } from '../../../core/failure.ts'
import { checkDatabase } from '../../../core/store/sqlite/check.ts'
import { type KeptWork, keptWork } from '../../../core/workflows/kept-work.ts'
import { dependencies, planNodes } from '../../../core/workflows/plan.ts'
import { newExecution, newWorkflow } from '../../store/conformance/drawn.ts'
import { requester } from '../_admission.ts'
import { openTestStore, organizationId, temporaryDirectory } from '../store/_store.ts'
import { openServer } from './_server.ts'

/** A node whose result is `{data: input}`. */
const node = (input: unknown, more: object = {}) => ({
  model_id: 'any',
  task: 'std/embeddings',
  inputs: { input },
  cache: 'off',
  retries: { max: 0 },
  ...more,
})
const each = (list: unknown, more: object = {}) => node('${item}', { for_each: list, ...more })
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g']

function execution(nodes: Record<string, object>, kept?: KeptWork) {
  const dag = Dag.parse({ nodes })
  const { modelId: _, ...drawn } = newExecution({ nodes: {} })
  return { ...drawn, definition: newWorkflow({ dag }), nodes: planNodes(dag, kept) }
}

type Server = Awaited<ReturnType<typeof openServer>>

/** What a node has made. */
async function resultOf(server: Server, executionId: string, nodeId: string): Promise<unknown> {
  const { result } = (await server.store.executions.results(organizationId, executionId, [nodeId]))[nodeId]!
  return result === null ? null : (JSON.parse(typeof result === 'string' ? result : await result.text()) as unknown)
}
const itemsOf = (server: Server, id: string, nodeId: string) =>
  server.store.executions.items(organizationId, id, { nodeId, after: -1, limit: 100 })
const statusOf = async (server: Server, id: string) => (await server.summary(id)).status
const noFindings = async (dataDir: string) => expect((await checkDatabase(dataDir)).findings).toEqual([])

test('the task runs for each item, as many at once as the node allows, and the results are in order', async () => {
  using directory = temporaryDirectory()
  const dataDir = directory.path
  let [now, most] = [0, 0]
  const ended: string[] = []
  const third = Promise.withResolvers<void>()
  await using server = await openServer(
    dataDir,
    async input => {
      if (!letters.includes(input)) return
      most = Math.max(most, ++now)
      // The first of them end after the third has begun.
      if (input < 'c') await third.promise
      if (input === 'c') third.resolve()
      now--
      ended.push(input)
    },
    { slots: 8 },
  )
  const wanted = execution({
    list: node(letters),
    each: node('${item}', { for_each: '${nodes.list.result.data}', max_parallel: 3 }),
    after: node('${nodes.each.result[*].data}'),
    first: node('${nodes.each.result[0].data} of ${nodes.each.result[6].data}'),
    again: node('${index}: ${item.data}', { for_each: '${nodes.each.result}' }),
  })
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(most).toBe(3)
  expect(ended[0]).toBe('c')
  expect(ended.toSorted()).toEqual(letters)
  expect(await resultOf(server, wanted.id, 'each')).toEqual(letters.map(data => ({ data })))
  expect(await resultOf(server, wanted.id, 'after')).toEqual({ data: letters })
  expect(await resultOf(server, wanted.id, 'first')).toEqual({ data: 'a of g' })
  expect(await resultOf(server, wanted.id, 'again')).toEqual(
    letters.map((letter, at) => ({ data: `${at}: ${letter}` })),
  )
  const { each: shown } = await server.nodes(wanted.id)
  expect(shown).toMatchObject({ status: 'completed', items: { total: 7, completed: 7, failed: 0, running: 0 } })
  expect(shown!.startedAt).not.toBeNull()
  const { progress } = await server.summary(wanted.id)
  expect(progress).toMatchObject({ total: 5, completed: 5, running: 0, waiting: 0 })
  await noFindings(dataDir)
})

test('an item that equals another one or earlier work reuses its result', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input))
  const before = execution({ one: node('b', { cache: 'use' }) })
  await server.store.executions.create(before)
  await server.ended(before.id)
  const wanted = execution({ each: each(['a', 'b', 'a', 'c'], { cache: 'use' }) })
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(ran).toEqual(['b', 'a', 'c'])
  expect(await resultOf(server, wanted.id, 'each')).toEqual(['a', 'b', 'a', 'c'].map(data => ({ data })))
  const items = await itemsOf(server, wanted.id, 'each')
  expect(items.map(({ index, status }) => [index, status])).toEqual([0, 1, 2, 3].map(at => [at, 'completed']))
  expect(items.map(({ cached }) => cached)).toEqual([false, true, true, false])
  await noFindings(directory.path)
})

const failing = (input: string) =>
  input === 'c' ? Promise.reject(new Failure('invalid_value', 'No c.')) : Promise.resolve()

test('the first item that fails fails the node and cancels the others', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, failing, { slots: 1 })
  const wanted = execution({ each: each(letters, { max_parallel: 2 }), after: node('${nodes.each.result}') })
  await server.store.executions.create(wanted)
  await expect.poll(() => statusOf(server, wanted.id)).toBe('failed')
  const { each: failed, after } = await server.nodes(wanted.id)
  expect(failed).toMatchObject({
    status: 'failed',
    error: { code: 'invalid_value', message: 'Item 2: No c.' },
    items: { total: 7, completed: 2, failed: 1, running: 0 },
  })
  expect(after!.status).toBe('skipped')
  const items = await itemsOf(server, wanted.id, 'each')
  expect(items.map(({ status }) => status)).toEqual(['completed', 'completed', 'failed', 'cancelled'])
  expect((await server.summary(wanted.id)).error).toMatchObject({ nodeId: 'each', cause: { message: 'Item 2: No c.' } })
  await noFindings(directory.path)
})

test('with on_item_error continue the place of a failed item is null, and the node completes', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, failing)
  const wanted = execution({
    each: each(letters, { on_item_error: 'continue' }),
    after: node('${nodes.each.result[*].data}'),
  })
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(await resultOf(server, wanted.id, 'after')).toEqual({ data: letters.map(one => (one === 'c' ? null : one)) })
  expect((await server.nodes(wanted.id)).each).toMatchObject({ items: { completed: 6, failed: 1 }, error: null })
  const page = { nodeId: 'each', after: -1, limit: 10, status: 'failed' } as const
  expect(await server.store.executions.items(organizationId, wanted.id, page)).toMatchObject([
    { index: 2, error: { message: 'No c.' } },
  ])
  await noFindings(directory.path)
})

test('an empty list has an empty result at once, without a slot', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input), { slots: 0 })
  const wanted = execution({ each: each([]) })
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(await resultOf(server, wanted.id, 'each')).toEqual([])
  expect((await server.summary(wanted.id)).startedAt).not.toBeNull()
  await noFindings(directory.path)
})

test.for<[title: string, nodes: Record<string, object>, message: string]>([
  [
    'what is no list',
    { a: node('x'), each: each('${nodes.a.result.data}') },
    "The 'for_each' of node 'each' is of type string, not a list.",
  ],
  [
    'a list that is too long',
    { each: each(letters, { max_items: 5 }) },
    "The list of node 'each' has 7 items, and its 'max_items' allows 5.",
  ],
  [
    'a list that does not exist',
    { a: node('x'), each: each('${nodes.a.result.rows}') },
    "'rows' not found in 'result'",
  ],
])('%s fails the node with the reason', async ([, nodes, message]) => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, () => Promise.resolve())
  const wanted = execution(nodes)
  await server.store.executions.create(wanted)
  await expect.poll(() => statusOf(server, wanted.id)).toBe('failed')
  expect((await server.nodes(wanted.id)).each!.error!.message).toContain(message)
  await noFindings(directory.path)
})

test('a condition is about the node, and a skipped node before it may be replaced by a default', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input))
  const wanted = execution({
    off: each(letters, { when: { value: 1, equals: 2 } }),
    on: each(['x'], { when: { value: 1, equals: 1 } }),
    after: each('${nodes.off.result}', { defaults: { 'nodes.off.result': ['instead'] } }),
    any: node('${nodes.off.status}, ${nodes.on.result[*].data}', { join: 'any' }),
  })
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(ran.toSorted()).toEqual(['instead', 'skipped, ["x"]', 'x'])
  await noFindings(directory.path)
})

test('a cancelled execution cancels its items, and nothing of it runs any more', async () => {
  using directory = temporaryDirectory()
  const begun = Promise.withResolvers<void>()
  await using server = await openServer(
    directory.path,
    input => (input === 'b' ? (begun.resolve(), new Promise(() => {})) : Promise.resolve()),
    { slots: 1 },
  )
  const wanted = execution({ each: each(letters, { max_parallel: 3 }) })
  await server.store.executions.create(wanted)
  await begun.promise
  expect((await server.nodes(wanted.id)).each).toMatchObject({ status: 'running', items: { completed: 1, running: 1 } })
  await server.executions.cancel(organizationId, wanted.id)
  expect((await server.nodes(wanted.id)).each).toMatchObject({
    status: 'cancelled',
    items: { completed: 1, running: 0 },
  })
  expect(await server.store.jobs.counts()).toMatchObject({ pending: 0, processing: 0, completed: 1, cancelled: 4 })
  await noFindings(directory.path)
})

test('after the failure of another node the running items end, no other starts, and the node is skipped', async () => {
  using directory = temporaryDirectory()
  const [begun, held] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ran: string[] = []
  await using server = await openServer(
    directory.path,
    async input => {
      ran.push(input)
      if (input === 'b') begun.resolve()
      if (input === 'a' || input === 'b') await held.promise
      if (input === 'fails') {
        await begun.promise
        throw new Failure('invalid_value', 'No.')
      }
    },
    { slots: 3 },
  )
  const wanted = execution({ each: each(letters, { max_parallel: 2 }), other: node('fails') })
  await server.store.executions.create(wanted)
  await expect.poll(async () => (await server.nodes(wanted.id)).other!.status).toBe('failed')
  expect(await statusOf(server, wanted.id)).toBe('running')
  held.resolve()
  await expect.poll(() => statusOf(server, wanted.id)).toBe('failed')
  expect((await server.nodes(wanted.id)).each).toMatchObject({
    status: 'skipped',
    skipReason: 'failure',
    items: { total: 7, completed: 2, failed: 0, running: 0 },
  })
  expect((await server.summary(wanted.id)).error).toMatchObject({ failedNodes: ['other'], skippedNodes: ['each'] })
  expect(ran.toSorted()).toEqual(['a', 'b', 'fails'])
  await noFindings(directory.path)
})

test('an item whose job is cancelled has failed', async () => {
  using directory = temporaryDirectory()
  const held = Promise.withResolvers<void>()
  await using server = await openServer(directory.path, () => held.promise, { slots: 1 })
  const wanted = execution({ each: each(letters, { on_item_error: 'continue', max_parallel: 2 }) })
  await server.store.executions.create(wanted)
  await expect.poll(async () => (await itemsOf(server, wanted.id, 'each'))[1]?.status).toBe('ready')
  await server.jobs.cancel(organizationId, (await itemsOf(server, wanted.id, 'each'))[1]!.jobId!)
  held.resolve()
  await server.ended(wanted.id)
  expect(await resultOf(server, wanted.id, 'each')).toEqual(letters.map(data => (data === 'b' ? null : { data })))
  await noFindings(directory.path)
})

test('after a restart the items that are left run, and each has one result', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  const wanted = execution({ list: node(letters), each: each('${nodes.list.result.data}', { max_parallel: 2 }) })
  {
    const begun = Promise.withResolvers<void>()
    await using server = await openServer(
      directory.path,
      async input => {
        if (input === 'd') return begun.resolve(), new Promise(() => {})
        ran.push(input)
      },
      { slots: 1 },
    )
    await server.store.executions.create(wanted)
    await begun.promise
  }
  await using server = await openServer(directory.path, async input => void ran.push(input), { slots: 1 })
  await server.ended(wanted.id)
  expect(ran.slice(1)).toEqual(letters)
  expect(await resultOf(server, wanted.id, 'each')).toEqual(letters.map(data => ({ data })))
  await noFindings(directory.path)
})

test('a list that was not known when the server ended is read when the job of its node gets a slot', async () => {
  using directory = temporaryDirectory()
  const wanted = execution({ each: each(letters, { max_parallel: 3 }) })
  {
    await using opened = await openTestStore({ dataDir: directory.path })
    await opened.store.executions.create(wanted)
  }
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => void ran.push(input), { slots: 1 })
  await server.ended(wanted.id)
  expect(ran).toEqual(letters)
  expect(await resultOf(server, wanted.id, 'each')).toEqual(letters.map(data => ({ data })))
  await noFindings(directory.path)
})

test('a list of many items in a large result is read in slices, and its results are a large result again', async () => {
  using directory = temporaryDirectory()
  await using server = await openServer(directory.path, () => Promise.resolve(), { slots: 4 })
  const rows = Array.from({ length: 600 }, (_, at) => `${at} ${'x'.repeat(1_000)}`)
  const wanted = execution({
    list: node(rows),
    each: each('${nodes.list.result.data}'),
    count: node('${nodes.each.result[599].data}'),
  })
  await server.store.executions.create(wanted)
  await server.ended(wanted.id)
  expect(await resultOf(server, wanted.id, 'each')).toEqual(rows.map(data => ({ data })))
  expect(await resultOf(server, wanted.id, 'count')).toEqual({ data: rows[599] })
  await noFindings(directory.path)
})

/** A retry of an execution from where it failed, not created yet. */
async function retried(server: Server, id: string, nodes: Record<string, object>) {
  const dag = Dag.parse({ nodes })
  const ended = await server.store.executions.nodes(organizationId, id)
  const kept = keptWork(dag, dependencies(dag), ended, { from: 'failed' })
  return { ...execution(nodes, kept), parentExecutionId: id }
}

test('a retry of a list runs the items that are left, and the others keep their results and jobs', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  let fails = new Set(['b', 'e'])
  const begun = Promise.withResolvers<void>()
  let held = Promise.resolve()
  const wanted = { each: each(letters, { max_parallel: 2 }), after: node('${nodes.each.result[*].data}') }
  const first = execution(wanted)
  let second: Awaited<ReturnType<typeof retried>>
  const open = () =>
    openServer(
      directory.path,
      async input => {
        ran.push(input)
        if (fails.has(input)) throw new Failure('invalid_value', `No ${input}.`)
        if (input !== 'f') return
        begun.resolve()
        await held
      },
      { slots: 1 },
    )
  const shown = async (server: Server, id: string) =>
    (await itemsOf(server, id, 'each')).map(({ status, cached }) => `${status}${cached ? ' before' : ''}`)
  {
    await using server = await open()
    await server.store.executions.create(first)
    await expect.poll(() => statusOf(server, first.id)).toBe('failed')
    expect(await shown(server, first.id)).toEqual(['completed', 'failed', 'cancelled'])
    fails = new Set(['e'])
    const middle = await retried(server, first.id, wanted)
    await server.store.executions.create(middle)
    await expect.poll(() => statusOf(server, middle.id)).toBe('failed')
    expect(ran.splice(0)).toEqual(['a', 'b', 'b', 'c', 'd', 'e'])
    const kept = ['completed before', 'completed', 'completed', 'completed', 'failed', 'cancelled']
    expect(await shown(server, middle.id)).toEqual(kept)
    expect((await server.nodes(middle.id)).each!.items).toMatchObject({ total: 7, completed: 4, failed: 1 })
    fails = new Set()
    held = new Promise(() => {})
    second = await retried(server, middle.id, wanted)
    await server.store.executions.create(second)
    await begun.promise
    // What it keeps stays, whoever made it.
    for (const { id } of [first, middle]) await server.executions.remove(organizationId, id)
  }
  held = Promise.resolve()
  await using server = await open()
  await server.ended(second.id)
  expect(ran).toEqual(['e', 'f', 'f', 'g', letters])
  expect(await resultOf(server, second.id, 'each')).toEqual(letters.map(data => ({ data })))
  const kept = Array(4).fill('completed before')
  expect(await shown(server, second.id)).toEqual([...kept, 'completed', 'completed', 'completed'])
  expect((await server.nodes(second.id)).each!.items).toMatchObject({ total: 7, completed: 7, failed: 0 })
  await noFindings(directory.path)
  await server.executions.remove(organizationId, second.id)
  expect(await server.store.jobs.counts()).toMatchObject({ completed: 0, failed: 0, cancelled: 0 })
  await noFindings(directory.path)
})

test('a retry with other parameters runs all items, and one with the same those that are left', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => {
    ran.push(input)
    if (input === 'b') throw new Failure('invalid_value', 'No b.')
  })
  const dag = Dag.parse({ nodes: { each: each('${input.texts}', { on_item_error: 'continue' }) } })
  const { priority, retentionMs, metadata, origin } = newExecution({ nodes: {} })
  const optionsOf = (texts: string[]) => ({
    workflow: null,
    definition: newWorkflow({ dag }),
    inputParams: { texts },
    timeout: undefined,
    idempotency: null,
    requester: requester(organizationId),
    offer: server.offer,
    priority,
    retentionMs,
    metadata,
    origin,
  })
  const { execution: first } = await server.executions.execute(optionsOf(['a', 'b']))
  await server.ended(first.id)
  for (const texts of [
    ['a', 'b'],
    ['a', 'c'],
  ]) {
    const before = (await server.executions.find(organizationId, first.id))!
    const again = await server.executions.retry(before, { from: undefined }, optionsOf(texts))
    await server.ended(again.execution.id)
  }
  expect(ran).toEqual(['a', 'b', 'b', 'a', 'c'])
  await noFindings(directory.path)
})

test('a retry reuses a completed node whole, also when the earlier execution is deleted', async () => {
  using directory = temporaryDirectory()
  const ran: string[] = []
  await using server = await openServer(directory.path, async input => {
    ran.push(input)
    if (input === 'sum 3' && ran.length < 5) throw new Failure('invalid_value', 'Not yet.')
  })
  const nodes = { each: each(['1', '2', '3']), sum: node('sum ${nodes.each.result[2].data}') }
  const wanted = execution(nodes)
  await server.store.executions.create(wanted)
  await expect.poll(() => statusOf(server, wanted.id)).toBe('failed')
  const again = await retried(server, wanted.id, nodes)
  await server.store.executions.create(again)
  await server.ended(again.id)
  expect(ran).toEqual(['1', '2', '3', 'sum 3', 'sum 3'])
  await server.executions.remove(organizationId, wanted.id)
  expect(await resultOf(server, again.id, 'each')).toEqual(['1', '2', '3'].map(data => ({ data })))
  expect((await itemsOf(server, again.id, 'each')).map(({ status }) => status)).toEqual(Array(3).fill('completed'))
  await noFindings(directory.path)
  await server.executions.remove(organizationId, again.id)
  expect(await server.store.jobs.counts()).toMatchObject({ completed: 0, failed: 0 })
  await noFindings(directory.path)
})
