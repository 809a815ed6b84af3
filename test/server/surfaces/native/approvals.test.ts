import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startApp, type TestApp } from '../../../_app.ts'
import { openReceiver, type Receiver } from '../../../_receiver.ts'
import { openReader } from '../../_sse.ts'

/** A pixel. */
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC'

let app: TestApp
let receiver: Receiver

beforeAll(async () => {
  receiver = await openReceiver()
  app = await startApp({ models: [], webhooks: { allowed_addresses: ['127.0.0.1'], retry_delays: [] } })
})
afterAll(async () => {
  await app[Symbol.asyncDispose]()
  await receiver[Symbol.asyncDispose]()
})

interface Approval {
  id: string
  execution_id: string
  node_id: string
  item: number | null
  title: string
  images: string[]
  may_answer: boolean
  url: string | null
  timeout_at: number | null
}
interface Node {
  node_id: string
  status: string
  awaits: string | null
  job_id: string
  result: Record<string, unknown> | null
  error: { code: string; message: string } | null
  answer_url: string | null
}
interface Execution {
  id: string
  status: string
  progress: Record<string, number>
  nodes: Node[]
}
interface Refusal {
  error: { code: string; message: string; param?: string }
}

async function call<Answer>(
  path: string,
  body?: unknown,
  token?: string | null,
): Promise<Answer & Refusal & { status: number }> {
  const response = await app.fetch(path, { body, ...(token === undefined ? {} : { token }) })
  return { ...((await response.json()) as Answer & Refusal), status: response.status }
}
const read = async (id: string, query = ''): Promise<Execution> =>
  (await call<{ execution: Execution }>(`/api/workflow-executions/${id}${query}`)).execution
const ended = (id: string) => read(id, '?wait=60')
const nodeOf = async (id: string, node: string): Promise<Node> =>
  (await call<{ node: Node }>(`/api/workflow-executions/${id}/nodes/${node}`)).node

/** Starts an execution of one waiting node, `ask`, and a node after it, and resolves once it waits. */
async function begin(task: string, inputs: object, more: object = {}): Promise<Execution> {
  const after = { task: 'json/select', inputs: { input: '${nodes.ask.result}', steps: [{ pick: 'at' }] } }
  const dag = { nodes: { ask: { task, inputs, retries: { max: 0 } }, after } }
  const { execution } = await call<{ execution: Execution }>('/api/workflows/run', { dag, ...more })
  await expect.poll(async () => (await nodeOf(execution.id, 'ask')).status, { interval: 20 }).toBe('waiting')
  return read(execution.id)
}
const resolve = (id: string, body: object, token?: string) =>
  call(`/api/workflow-executions/${id}/nodes/ask/resolve`, body, token)
const openOf = async (id: string, token?: string) =>
  (await call<{ approvals: Approval[] }>(`/api/approvals?execution_id=${id}`, undefined, token)).approvals
const resultOf = async (id: string) => (await nodeOf(id, 'ask')).result

async function tokenOf(name: string, more: object = {}, organization = app.organizationId): Promise<string> {
  const body = { name, scopes: ['user:read', 'user:write'], ...more }
  return (await call<{ secret: string }>(`/api/organizations/${organization}/tokens`, body)).secret
}
const postForm = (url: string, fields: Record<string, string>) =>
  fetch(url, { method: 'POST', body: new URLSearchParams(fields) })

test('an approval waits without a slot, is listed, and its answer is the result of its node', async () => {
  const { id, status, progress } = await begin(
    'wait/approval',
    { title: 'Publish ${input.what}?', timeout: 600 },
    {
      input_params: { what: 'it' },
    },
  )
  expect([status, progress.waiting, progress.running]).toEqual(['running', 1, 0])
  const [approval] = await openOf(id)
  expect(approval).toMatchObject({ execution_id: id, node_id: 'ask', title: 'Publish it?', may_answer: true })
  expect(approval!.timeout_at).toBeGreaterThan(Date.now() / 1000 + 500)
  expect((await call<{ approval: Approval }>(`/api/approvals/${approval!.id}`)).approval).toEqual(approval)
  const job = await call(`/api/jobs/${approval!.id}`)
  expect(job).toMatchObject({ waiting_for: { reason: 'approval' }, queue_position: null, attempts: 0 })
  expect(await resolve(id, { approved: true, comment: 'Fine.' })).toMatchObject({ status: 200, resolved: true })
  expect(await resultOf(id)).toEqual({
    approved: true,
    answer: null,
    comment: 'Fine.',
    by: { type: 'token', name: expect.any(String) },
    at: expect.any(Number),
  })
  expect((await ended(id)).nodes.map(node => node.status)).toEqual(['completed', 'completed'])
  expect(await openOf(id)).toEqual([])
  expect(await call(`/api/approvals/${approval!.id}`)).toMatchObject({ status: 404, error: { code: 'not_found' } })
  expect(await resolve(id, { approved: false })).toMatchObject({ status: 409, error: { code: 'conflict' } })
})

test('of two answers at once one counts, whichever way they come', async () => {
  const { id } = await begin('wait/approval', { title: 'Which?' })
  const [{ url }] = (await openOf(id)) as [Approval]
  const answers = await Promise.all([
    resolve(id, { approved: true }).then(({ status }) => status),
    resolve(id, { approved: false }).then(({ status }) => status),
    postForm(url!, { decision: 'approve' }).then(({ status }) => status),
    postForm(url!, { decision: 'reject' }).then(({ status }) => status),
  ])
  expect(answers.filter(status => status === 200)).toHaveLength(1)
  expect(answers.filter(status => status === 409 || status === 404)).toHaveLength(3)
  expect((await ended(id)).status).toBe('completed')
})

test('the page needs no token, runs no script, shows texts as they are, and works once', async () => {
  const form = {
    properties: {
      amount: { type: 'integer', title: 'How <much>', minimum: 1, maximum: 9 },
      kind: { enum: ['a', 'b"'] },
      sure: { type: 'boolean' },
    },
    required: ['amount'],
  }
  const hostile = '<script>alert(1)</script>"\'&'
  const { id } = await begin('wait/approval', { title: hostile, text: `${hostile}\nsecond line`, form })
  const [{ url }] = (await openOf(id)) as [Approval]
  expect(url).toMatch(/\/approvals\/[\w-]{43}$/)
  const shown = await fetch(url!)
  const html = await shown.text()
  expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8'])
  expect(shown.headers.get('content-security-policy')).toMatch(
    /^default-src 'none'; style-src 'nonce-[^']+'; img-src 'self'/,
  )
  expect(shown.headers.get('cache-control')).toBe('no-store')
  expect(html).not.toContain('<script')
  expect(html).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;\nsecond line')
  expect(html).toContain('How &lt;much&gt; *')
  const wrong = await postForm(url!, { decision: 'approve', 'field.amount': '12', 'field.kind': 'b"', comment: '<b>' })
  const again = await wrong.text()
  expect(wrong.status).toBe(400)
  expect(again).toMatch(/role="alert">.*at most 9/)
  expect(again).toContain('value="12"')
  expect(again).toContain('<option value="b&quot;" selected>')
  expect(again).toContain('&lt;b&gt;</textarea>')
  expect((await postForm(url!, { decision: 'maybe' })).status).toBe(400)
  const done = await postForm(url!, { decision: 'approve', 'field.amount': '7', 'field.sure': 'on' })
  expect([done.status, await done.text()]).toEqual([200, expect.stringContaining('You have approved it.')])
  expect((await ended(id)).status).toBe('completed')
  expect(await resultOf(id)).toMatchObject({
    approved: true,
    answer: { amount: 7, sure: true },
    by: { type: 'link', name: null },
  })
  for (const late of [await fetch(url!), await postForm(url!, { decision: 'approve' })])
    expect([late.status, await late.text()]).toEqual([404, expect.stringContaining('works no more')])
})

test('images are copied, and shown by addresses of this server only', async () => {
  const image = `data:image/png;base64,${png}`
  const { id } = await begin(
    'wait/approval',
    { title: 'This one?', images: [image, '${input.second}'] },
    {
      input_params: { second: image },
    },
  )
  const [approval] = await openOf(id)
  expect(approval!.images).toHaveLength(2)
  for (const url of approval!.images) {
    expect(url).toMatch(new RegExp(`^${app.url}/files/file-`))
    const shown = await fetch(url)
    expect([shown.status, shown.headers.get('content-type')]).toEqual([200, 'image/png'])
  }
  const html = await (await fetch(approval!.url!)).text()
  expect(html.match(/<img src="([^"]*)/g)).toHaveLength(2)
  expect(html).not.toContain('data:')
  await resolve(id, { approved: true })
  expect((await ended(id)).status).toBe('completed')
})

test('an answer must fit the form, and a rejection needs none', async () => {
  const form = { properties: { size: { type: 'number', maximum: 3 } }, required: ['size'] }
  const { id } = await begin('wait/approval', { title: 'Size?', form })
  for (const [body, message] of [
    [{ approved: true }, /needs 'size'/],
    [{ approved: true, answer: { size: 4 } }, /at most 3/],
    [{ approved: true, answer: { size: 'big' } }, /must be number/],
    [{ approved: true, answer: { size: 1, other: 1 } }, /other/],
    [{ answer: { size: 1 } }, /approved/],
    [{ approved: true, body: 1, answer: 'x' }, /must be object/],
  ] as const) {
    const refused = await resolve(id, body)
    expect([refused.status, refused.error.message]).toEqual([400, expect.stringMatching(message)])
  }
  expect((await resolve(id, { approved: false, comment: 'No.' })).status).toBe(200)
  expect((await ended(id)).status).toBe('completed')
  expect(await resultOf(id)).toMatchObject({ approved: false, answer: null, comment: 'No.' })
})

test('named approvers alone may answer, by the name of their token or the address of their user, and nobody by link', async () => {
  const { user } = await call<{ user: { id: string } }>(`/api/organizations/${app.organizationId}/members`, {
    name: 'Ada',
    email: 'ada@example.com',
    role: 'member',
  })
  const [byName, byUser, neither] = await Promise.all([
    tokenOf('release-manager'),
    tokenOf('of-ada', { user_id: user.id }),
    tokenOf('somebody'),
  ])
  const approvers = ['release-manager', 'Ada@example.com']
  const asked = async () => (await begin('wait/approval', { title: 'Release?', approvers })).id
  const [first, second] = [await asked(), await asked()]
  expect(await openOf(first, neither)).toMatchObject([{ may_answer: false, url: null }])
  expect(await openOf(first, byName)).toMatchObject([{ may_answer: true, url: null }])
  const refused = await resolve(first, { approved: true }, neither)
  expect([refused.status, refused.error.message]).toEqual([
    403,
    expect.stringContaining("'somebody' is not among them"),
  ])
  expect((await resolve(first, { approved: true }, byName)).status).toBe(200)
  expect((await resolve(second, { approved: true }, byUser)).status).toBe(200)
  expect(await resultOf(first)).toMatchObject({ by: { type: 'token', name: 'release-manager' } })
  expect(await resultOf(second)).toMatchObject({ by: { type: 'user', name: 'ada@example.com' } })
})

test('another organization sees nothing of it', async () => {
  const { organization } = await call<{ organization: { id: string } }>('/api/organizations', { name: 'other' })
  const other = await tokenOf('theirs', {}, organization.id)
  const { id } = await begin('wait/approval', { title: 'Secret?' })
  const [approval] = await openOf(id)
  expect((await call<{ approvals: Approval[] }>('/api/approvals', undefined, other)).approvals).toEqual([])
  expect((await call(`/api/approvals/${approval!.id}`, undefined, other)).status).toBe(404)
  expect((await resolve(id, { approved: true }, other)).status).toBe(404)
  await call(`/api/workflow-executions/${id}/cancel`, {})
  expect(await openOf(id)).toEqual([])
  expect((await fetch(approval!.url!)).status).toBe(404)
})

test('at the timeout the default counts, and without one the node fails', async () => {
  const given = { approved: false, comment: 'Nobody was there.' }
  const [withDefault, without] = await Promise.all([
    begin('wait/approval', { title: 'Quick?', timeout: 1, default: given }),
    begin('wait/approval', { title: 'Quick?', timeout: 1 }),
  ])
  expect((await ended(withDefault.id)).status).toBe('completed')
  expect(await resultOf(withDefault.id)).toMatchObject({ ...given, by: { type: 'timeout', name: null } })
  const failed = await ended(without.id)
  expect(failed.nodes.map(({ status }) => status)).toEqual(['failed', 'skipped'])
  expect(failed.nodes[0]!.error).toMatchObject({
    code: 'timeout',
    message: expect.stringContaining('Nobody has answered'),
  })
})

test('an event resumes its node, once', async () => {
  const { id } = await begin('wait/event', { title: 'Paid' })
  const { answer_url: url } = await nodeOf(id, 'ask')
  const send = (body: string, more: object = {}) =>
    fetch(url!, { method: 'POST', body, headers: { 'content-type': 'application/json', ...more } })
  expect((await send('{')).status).toBe(400)
  expect((await send(JSON.stringify('x'.repeat(262_144)))).status).toBe(413)
  expect((await send('{}', { 'content-type': 'text/plain' })).status).toBe(415)
  expect((await send('{}', { 'webhook-signature': 'v1,x', 'webhook-id': 'a', 'webhook-timestamp': '1' })).status).toBe(
    403,
  )
  const both = await Promise.all([send('{"paid":1}'), send('{"paid":2}')])
  expect(both.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
    200,
    expect.toSatisfy(status => status === 404 || status === 409),
  ])
  expect((await ended(id)).status).toBe('completed')
  expect(await resultOf(id)).toMatchObject({ body: { paid: expect.any(Number) }, timed_out: false })
  expect((await send('{}')).status).toBe(404)
})

test('a signed event is checked with the secret of the organization', async () => {
  const { id } = await begin('wait/event', { signed: true })
  const { answer_url: url } = await nodeOf(id, 'ask')
  const { signing_secret: secret } = await call<{ signing_secret: string }>(
    `/api/organizations/${app.organizationId}/webhook-secret`,
  )
  const signed = (body: string, at: Date, key = secret) => ({
    'content-type': 'application/json',
    'webhook-id': 'msg_1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(key).sign('msg_1', at, body),
  })
  const now = new Date()
  const send = async (body: string, headers: Record<string, string>) =>
    (await fetch(url!, { method: 'POST', body, headers })).status
  expect(await send('{}', { 'content-type': 'application/json' })).toBe(403)
  expect(await send('{"a":2}', signed('{"a":1}', now))).toBe(403)
  expect(await send('{"a":1}', signed('{"a":1}', new Date(now.getTime() - 400_000)))).toBe(403)
  expect(await send('{"a":1}', signed('{"a":1}', now, `whsec_${Buffer.alloc(32).toString('base64')}`))).toBe(403)
  expect(await send('{"a":1}', signed('{"a":1}', now))).toBe(200)
  expect((await ended(id)).status).toBe('completed')
})

test('a time ends by itself, and can be ended before', async () => {
  const soon = await begin('wait/until', { seconds: 1 })
  const late = await begin('wait/until', { at: Math.floor(Date.now() / 1000) + 3_000 })
  expect(await nodeOf(late.id, 'ask')).toMatchObject({ awaits: 'time', answer_url: null })
  expect((await ended(soon.id)).status).toBe('completed')
  expect(await resolve(late.id, { approved: true })).toMatchObject({ status: 400, error: { param: 'approved' } })
  expect((await resolve(late.id, {})).status).toBe(200)
  expect((await ended(late.id)).status).toBe('completed')
})

test('the timeout of an execution stops while it only waits, and the wait has its own', async () => {
  interface Timed extends Execution {
    timeout_at: number | null
    timeout_remaining: number | null
  }
  const { id } = await begin('wait/until', { seconds: 2 }, { timeout: 1 })
  const waiting = (await read(id)) as Timed
  expect(waiting.timeout_at).toBeNull()
  expect(waiting.timeout_remaining).toBeGreaterThan(0.5)
  expect(waiting.timeout_remaining).toBeLessThanOrEqual(1)
  expect(await ended(id)).toMatchObject({ status: 'completed', timeout_remaining: null })
  const asked = await begin('wait/approval', { title: 'For how long?' })
  const [{ timeout_at: until }] = (await openOf(asked.id)) as [Approval]
  expect(until! - Date.now() / 1000).toBeGreaterThan(89 * 86_400)
  expect((await resolve(asked.id, { approved: true })).status).toBe(200)
  const at = '2100-01-01T00:00:00Z'
  const { execution } = await call<{ execution: Execution }>('/api/workflows/run', {
    dag: { nodes: { late: { task: 'wait/until', inputs: { at } } } },
  })
  expect((await ended(execution.id)).nodes[0]!.error).toMatchObject({
    code: 'invalid_value',
    message: expect.stringContaining('a year at most'),
  })
})

test('a webhook tells that a node waits and where to answer, and reminds of it', async () => {
  const webhook_url = `${receiver.url}/asked`
  const webhook_events = ['workflow_execution.node.waiting', 'workflow_execution.node.reminder']
  const { id } = await begin('wait/approval', { title: 'Heard?', reminder: 1 }, { webhook_url, webhook_events })
  const waiting = await receiver.next(({ body }) => body.type === 'workflow_execution.node.waiting')
  const { url } = waiting.body.data.waits as { url: string }
  expect(waiting.body.data).toMatchObject({
    execution_id: id,
    node_id: 'ask',
    waits: { for: 'approval', title: 'Heard?', timeout_at: expect.any(Number) },
  })
  const reminder = await receiver.next(({ body }) => body.type === 'workflow_execution.node.reminder')
  expect(reminder.body.data).toMatchObject({ execution_id: id, node_id: 'ask', waits: { url } })
  expect((await postForm(url, { decision: 'approve' })).status).toBe(200)
  expect((await ended(id)).status).toBe('completed')
})

interface Item {
  index: number
  status: string
  awaits: string | null
  answer_url: string | null
}
const itemsOf = async (id: string, node = 'ask') =>
  (await call<{ items: Item[] }>(`/api/workflow-executions/${id}/nodes/${node}/items`)).items
const waitingItems = (id: string, node?: string) =>
  expect.poll(
    async () => (await itemsOf(id, node)).filter(({ status }) => status === 'waiting').map(({ index }) => index),
    { interval: 20, timeout: 40_000 },
  )

test('each item of a list asks by itself, as many at once as max_parallel allows, and is answered once', async () => {
  const inputs = { title: 'Use ${item}?', reminder: 1 }
  const ask = { task: 'wait/approval', for_each: ['a', 'b', 'c'], max_parallel: 2, inputs }
  const after = {
    task: 'json/select',
    inputs: { input: '${nodes.ask.result[*].approved}', steps: [{ slice: [0, 9] }] },
  }
  const { execution } = await call<{ execution: Execution }>('/api/workflows/run', {
    dag: { nodes: { ask, after } },
    webhook_url: `${receiver.url}/items`,
    webhook_events: ['workflow_execution.node.waiting', 'workflow_execution.node.reminder'],
  })
  const { id } = execution
  await waitingItems(id).toEqual([0, 1])
  expect(await nodeOf(id, 'ask')).toMatchObject({
    status: 'waiting',
    awaits: 'approval',
    answer_url: null,
    items: { waiting: 2, total: 3 },
  })
  expect(await read(id)).toMatchObject({ timeout_at: null, progress: { running: 0, waiting: 1 } })
  const asked = await openOf(id)
  expect(asked.map(({ item, title }) => [item, title])).toEqual([
    [1, 'Use b?'],
    [0, 'Use a?'],
  ])
  for (const [body, status, message] of [
    [{ approved: true }, 400, /Say which one with 'item'/],
    [{ approved: true, item: 3 }, 400, /has 3 items/],
    [{ approved: true, item: -1 }, 400, /item/],
    [{ approved: true, item: 2 }, 409, /it has not begun/],
    [{ item: 0 }, 400, /Say whether item 0 of the node 'ask' is approved/],
  ] as const) {
    const refused = await resolve(id, body)
    expect([refused.status, refused.error.message]).toEqual([status, expect.stringMatching(message)])
  }
  const links = (await itemsOf(id)).map(({ answer_url }) => answer_url)
  expect(links).toEqual([asked[1]!.url, asked[0]!.url])
  const told = await receiver.next(
    ({ body }) => body.type === 'workflow_execution.node.waiting' && body.data.item === 1,
  )
  expect(told.body.data).toMatchObject({
    execution_id: id,
    node_id: 'ask',
    job_id: asked[0]!.id,
    waits: { title: 'Use b?', url: links[1] },
  })
  const reminded = await receiver.next(
    ({ body }) => body.type === 'workflow_execution.node.reminder' && body.data.item === 1,
  )
  expect(reminded.body.data).toMatchObject({ node_id: 'ask', waits: { url: links[1] } })
  expect((await postForm(links[1]!, { decision: 'reject' })).status).toBe(200)
  expect((await postForm(links[1]!, { decision: 'approve' })).status).toBe(404)
  await waitingItems(id).toEqual([0, 2])
  expect(await resolve(id, { approved: true, item: 1 })).toMatchObject({ status: 409 })
  expect(await resolve(id, { approved: true, item: 2 })).toMatchObject({ status: 200, item: 2, node_id: 'ask' })
  expect(await resolve(id, { approved: true, item: 0 })).toMatchObject({ status: 200 })
  expect((await ended(id)).status).toBe('completed')
  expect((await nodeOf(id, 'after')).result).toEqual({ value: [true, false, true] })
  expect(await openOf(id)).toEqual([])
})

test('items that wait for events have addresses of their own, and end with their execution', async () => {
  const nodes = {
    paid: { task: 'wait/event', for_each: ['x', 'y'], inputs: { title: '${item}', timeout: 600 } },
    later: { task: 'wait/until', for_each: [600], inputs: { seconds: '${item}' } },
  }
  const { execution } = await call<{ execution: Execution }>('/api/workflows/run', { dag: { nodes } })
  const { id } = execution
  await waitingItems(id, 'paid').toEqual([0, 1])
  await waitingItems(id, 'later').toEqual([0])
  expect(await itemsOf(id, 'later')).toMatchObject([{ awaits: 'time', answer_url: null }])
  const [first, second] = (await itemsOf(id, 'paid')).map(({ answer_url }) => answer_url!)
  const send = (url: string) =>
    fetch(url, { method: 'POST', body: '{"paid":1}', headers: { 'content-type': 'application/json' } })
  expect((await send(first!)).status).toBe(200)
  expect((await send(first!)).status).toBe(404)
  expect(await call(`/api/workflow-executions/${id}/nodes/later/resolve`, { item: 0 })).toMatchObject({ status: 200 })
  await waitingItems(id, 'paid').toEqual([1])
  await call(`/api/workflow-executions/${id}/cancel`, {})
  expect((await send(second!)).status).toBe(404)
  expect((await itemsOf(id, 'paid')).map(({ status }) => status)).toEqual(['completed', 'cancelled'])
})

test('that a list waits for times is in the streams of events, once', async () => {
  const dag = {
    nodes: {
      ask: { task: 'wait/event', inputs: { title: 'Begin', timeout: 600 } },
      later: { task: 'wait/until', for_each: [600, 601, 602], max_parallel: 2, inputs: { seconds: '${item}' } },
    },
    edges: [{ from: 'ask', to: 'later' }],
  }
  const { execution } = await call<{ execution: Execution }>('/api/workflows/run', { dag })
  const { id } = execution
  await expect.poll(async () => (await nodeOf(id, 'ask')).status, { interval: 20, timeout: 20_000 }).toBe('waiting')
  using own = await openReader(app, `/api/workflow-executions/${id}/events`)
  using all = await openReader(app, '/api/events')
  await Promise.all([own, all].map(reader => reader.until(() => reader.records.length > 0)))
  expect(await resolve(id, {})).toMatchObject({ status: 200 })
  const waits = ({ data: { type, data } }: { data: { type: string; data: Record<string, unknown> } }) =>
    type === 'workflow_execution.node.waiting' && data.node_id === 'later'
  for (const reader of [own, all]) await reader.until(() => reader.records.some(waits))
  const shown = await nodeOf(id, 'later')
  expect(shown).toMatchObject({ status: 'waiting', awaits: 'time', items: { waiting: 2, running: 0 } })
  await call(`/api/workflow-executions/${id}/nodes/later/resolve`, { item: 0 })
  await waitingItems(id, 'later').toEqual([1, 2])
  await call(`/api/workflow-executions/${id}/cancel`, {})
  for (const reader of [own, all]) {
    await reader.until(() => reader.records.some(({ data }) => data.type === 'workflow_execution.cancelled'))
    expect(reader.records.filter(waits)).toHaveLength(1)
    expect(reader.records.find(waits)!.data.data).toMatchObject({ job_id: shown.job_id })
    expect(reader.records.find(waits)!.data.data).not.toHaveProperty('item')
  }
})

test('guessed addresses are slowed down, and right ones are not', async () => {
  const { id } = await begin('wait/approval', { title: 'Guess?' })
  const [{ url }] = (await openOf(id)) as [Approval]
  const guess = () => fetch(`${app.url}/approvals/${'x'.repeat(43)}`).then(({ status }) => status)
  const seen = new Set<number>()
  for (let tries = 0; tries < 200 && !seen.has(429); tries++) seen.add(await guess())
  expect([...seen]).toEqual([404, 429])
  expect((await postForm(url!, { decision: 'approve' })).status).toBe(200)
})

test('a question that cannot be asked is refused before anything runs', async () => {
  const wrong = async (inputs: object, task = 'wait/approval') => {
    const refused = await call('/api/workflows/run', { dag: { nodes: { ask: { task, inputs } } } })
    expect(refused).toMatchObject({ status: 400, error: { code: 'invalid_graph' } })
    return refused.error.message
  }
  const form = { properties: { a: { type: 'integer' } }, required: ['b'] }
  expect(await wrong({ title: 'x', form })).toContain("the form has no field 'b'")
  expect(await wrong({ title: 'x', form: { properties: { a: { type: 'array' } } } })).toContain('type')
  const withDefault = { title: 'x', timeout: 5, form: { properties: { a: { type: 'integer' } } } }
  expect(await wrong({ ...withDefault, default: { approved: true, answer: { a: 'x' } } })).toContain(
    'does not fit the form',
  )
  expect(await wrong({ title: 'x', default: { approved: true } })).toContain("needs a 'timeout'")
  expect(await wrong({}, 'wait/until')).toContain("either 'at' or 'seconds'")
  expect(await wrong({ titel: 'x' })).toContain("Did you mean 'title'")
})

test('the validation warns of waits without an end, and of approvers that nobody is', async () => {
  await tokenOf('editor')
  const validate = async (inputs: object, more: object = {}, task = 'wait/approval') => {
    const dag = { nodes: { ask: { task, inputs } } }
    const { diagnostics, valid } = await call<{
      valid: boolean
      diagnostics: { warnings: { code: string; path: string; message: string }[] }
    }>('/api/workflows/validate', { dag, ...more })
    expect(valid).toBe(true)
    return diagnostics.warnings.map(({ code, path }) => `${code} ${path}`)
  }
  expect(await validate({ title: 'x', timeout: 60 })).toEqual([])
  expect(await validate({ title: 'x' })).toEqual(['unbounded_wait inputs.timeout'])
  expect(await validate({ title: 'x', timeout: 259_200 }, { timeout: 60 })).toEqual([])
  expect(await validate({ seconds: 70 }, { timeout: 60 }, 'wait/until')).toEqual([])
  const approvers = ['editor', 'editr', '${input.who}', 'nobody@example.com']
  const parameters = { who: { type: 'string' } }
  expect(await validate({ title: 'x', timeout: 60, approvers }, { parameters })).toEqual([
    'unknown_approver inputs.approvers[1]',
    'unknown_approver inputs.approvers[3]',
  ])
})
