import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openAccounts } from '../../../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../../../core/accounts/keys.ts'
import { newId } from '../../../../core/ids.ts'
import { openLog } from '../../../../core/log.ts'
import { openAdminStore } from '../../../../core/store/sqlite/admin.ts'
import { scopes } from '../../../../core/store/store.ts'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'

let app: TestApp
beforeAll(async () => {
  app = await startApp({ models: [fakeModel('fake'), fakeModel('other')] })
})
afterAll(() => app[Symbol.asyncDispose]())

interface Finding {
  code: string
  node_id?: string
  path?: string
}
interface Answer {
  workflow: { id: string; name: string; version: number; dag?: object; [field: string]: unknown }
  workflows: Answer['workflow'][]
  next_cursor: string | null
  diagnostics: { type_issues: Finding[]; warnings: Finding[] }
  execution: { id: string; status: string }
  error: { code: string; param: string | null }
  [field: string]: unknown
}

async function call(
  method: string,
  path: string,
  body?: unknown,
  more: { headers?: Record<string, string>; token?: string } = {},
): Promise<{ status: number; body: Answer; etag: string | null }> {
  const response = await app.fetch(path, { method, ...(body === undefined ? {} : { body }), ...more })
  return { status: response.status, body: (await response.json()) as Answer, etag: response.headers.get('etag') }
}

const chat = (content: string, more: object = {}) => ({
  model_id: 'fake',
  task: 'std/chat-completion',
  inputs: { messages: [{ role: 'user', content }] },
  ...more,
})
const chain = {
  nodes: { a: chat('${input.word}'), b: chat('${nodes.a.result.choices[0].message.content}') },
  edges: [{ from: 'a', to: 'b' }],
}
async function made(fields: object = {}): Promise<Answer['workflow']> {
  const { status, body } = await call('POST', '/api/workflows', { name: 'A chain', dag: chain, ...fields })
  expect([status, body]).toEqual([201, expect.anything()])
  return body.workflow
}
const codes = ({ diagnostics: { type_issues, warnings } }: Answer) =>
  [...type_issues, ...warnings].map(({ code, node_id }) => (node_id ? `${code} ${node_id}` : code))

test('a created workflow has its defaults, and is read as it was sent', async () => {
  const { status, body, etag } = await call('POST', '/api/workflows', { name: ' Story ', dag: chain })
  expect([status, etag, codes(body)]).toEqual([201, '"1"', []])
  expect(body.workflow).toMatchObject({
    object: 'workflow',
    name: 'Story',
    description: null,
    region: 'Global',
    timeout: 3600,
    on_failure: 'fail_fast',
    parameters: null,
    version: 1,
    dag: { edges: chain.edges },
  })
  const read = await call('GET', `/api/workflows/${body.workflow.id}`)
  expect([read.status, read.etag, read.body.workflow]).toEqual([200, '"1"', body.workflow])
})

test.for([
  ['a cycle', { a: chat('x'), b: chat('y') }, ['a>b', 'b>a'], ['cycle']],
  ['an edge to nowhere', { a: chat('x') }, ['a>g'], ['edge_unknown_node']],
  ['a node without a model', { a: chat('x', { model_id: null }) }, [], ['node_without_model a']],
  ['a model that is not there', { a: chat('x', { model_id: 'ghost' }) }, [], ['unknown_model a']],
  ['a task that is not there', { a: chat('x', { task: 'std/dance' }) }, [], ['unknown_task a']],
  ['no nodes', {}, [], ['empty_graph']],
  ['a reference to nobody', { a: chat('${nodes.z.result.x}') }, [], ['unknown_reference a']],
  ['a reference nobody can read', { a: chat('${input.}') }, [], ['invalid_reference_syntax a']],
  ['what the task needs is not there', { a: chat('x', { inputs: {} }) }, [], ['missing_input a']],
] as const)('%s is created with a warning, and cannot be executed', async ([, nodes, edges, expected]) => {
  const dag = { nodes, edges: edges.map(edge => ({ from: edge[0], to: edge[2] })) }
  const { status, body } = await call('POST', '/api/workflows', { name: 'x', dag })
  expect([status, codes(body)]).toEqual([201, expected])
  const validated = await call('POST', '/api/workflows/validate', { dag })
  expect([validated.status, validated.body.valid, codes(validated.body)]).toEqual([200, false, expected])
  const refused = await call('POST', `/api/workflows/${body.workflow.id}/execute`, {})
  expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid_graph'])
  expect((await call('GET', `/api/workflows/${body.workflow.id}/executions`)).body.executions).toEqual([])
})

test('validation without creation lists what runs in parallel', async () => {
  const dag = {
    nodes: { a: chat('x'), b: chat('x'), c: chat('${nodes.b.result.id}'), d: chat('x') },
    edges: [
      { from: 'a', to: 'b' },
      { from: 'a', to: 'd' },
    ],
  }
  const { body } = await call('POST', '/api/workflows/validate', { dag })
  expect(body).toMatchObject({ valid: true, order: [['a'], ['b', 'd'], ['c']] })
  expect(codes(body)).toEqual([])
  const round = { ...dag, edges: [...dag.edges, { from: 'd', to: 'a' }] }
  expect((await call('POST', '/api/workflows/validate', { dag: round })).body).toMatchObject({
    valid: false,
    order: null,
  })
})

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`n${at}`, chat('x')]))
test.for([
  ['no name', { dag: chain }, 'name'],
  ['an empty name', { name: ' ', dag: chain }, 'name'],
  ['no graph', { name: 'x' }, 'dag'],
  ['a graph that is none', { name: 'x', dag: [] }, 'dag'],
  ['a graph without nodes', { name: 'x', dag: {} }, 'dag.nodes'],
  ['nodes that are a list', { name: 'x', dag: { nodes: [] } }, 'dag.nodes'],
  ['a node without a task', { name: 'x', dag: { nodes: { a: { model_id: 'fake' } } } }, 'dag.nodes.a.task'],
  ['inputs that are a text', { name: 'x', dag: { nodes: { a: chat('x', { inputs: 'x' }) } } }, 'dag.nodes.a.inputs'],
  ['an edge without an end', { name: 'x', dag: { nodes: {}, edges: [{ from: 'a' }] } }, 'dag.edges[0].to'],
  [
    'a node without inputs',
    { name: 'x', dag: { nodes: { a: { ...chat('x'), inputs: undefined } } } },
    'dag.nodes.a.inputs',
  ],
  ['too many nodes', { name: 'x', dag: { nodes: many(501) } }, 'dag.nodes'],
  [
    'too many edges',
    { name: 'x', dag: { nodes: {}, edges: Array.from({ length: 1_001 }, () => ({ from: 'a', to: 'b' })) } },
    'dag.edges',
  ],
  ['a region of another kind', { name: 'x', dag: chain, region: 'us' }, 'region'],
  ['no time', { name: 'x', dag: chain, timeout: 0 }, 'timeout'],
  ['more time than a day', { name: 'x', dag: chain, timeout: 86_401 }, 'timeout'],
  ['a parameter of no type', { name: 'x', dag: chain, parameters: { n: { type: 'text' } } }, 'parameters.n.type'],
] as const)('%s: 400, nothing is stored', async ([, body, param]) => {
  const before = (await call('GET', '/api/workflows?limit=100')).body.workflows.length
  const { status, body: answer } = await call('POST', '/api/workflows', body)
  expect([status, answer.error.param]).toEqual([400, param])
  expect((await call('GET', '/api/workflows?limit=100')).body.workflows.length).toBe(before)
})

describe('a change', () => {
  test('makes a new version; PUT resets absent fields to their defaults, PATCH keeps them', async () => {
    const { id } = await made({ timeout: 60, region: 'EU', description: 'x' })
    const patched = await call('PATCH', `/api/workflows/${id}`, { name: 'Patched' })
    expect([patched.status, patched.etag]).toEqual([200, '"2"'])
    expect(patched.body.workflow).toMatchObject({
      name: 'Patched',
      timeout: 60,
      region: 'EU',
      description: 'x',
      version: 2,
    })
    const put = await call('PUT', `/api/workflows/${id}`, { name: 'Put', dag: { nodes: {}, edges: [] } })
    expect([put.status, codes(put.body)]).toEqual([200, ['empty_graph']])
    expect(put.body.workflow).toMatchObject({
      name: 'Put',
      timeout: 3600,
      region: 'Global',
      description: null,
      version: 3,
    })
    const old = await call('GET', `/api/workflows/${id}?version=2`)
    expect(old.body.workflow).toMatchObject({ name: 'Patched', version: 2 })
    expect((await call('GET', `/api/workflows/${id}?version=4`)).status).toBe(404)
    expect((await call('GET', `/api/workflows/${id}?version=0`)).status).toBe(400)
    expect((await call('PUT', `/api/workflows/${id}`, { name: 'x' })).status).toBe(400)
  })

  test.for([
    ['"1"', 409, 'version_conflict'],
    ['1', 409, 'version_conflict'],
    ['"2"', 200, undefined],
    ['*', 200, undefined],
    ['W/"2"', 200, undefined],
    ['"x"', 400, 'invalid_value'],
  ] as const)('If-Match: %s of a workflow at version 2 is %i', async ([version, status, code]) => {
    const { id } = await made()
    await call('PATCH', `/api/workflows/${id}`, { name: 'two' })
    const headers = { 'if-match': version }
    const changed = await call('PATCH', `/api/workflows/${id}`, { name: 'three' }, { headers })
    expect([changed.status, changed.body.error?.code]).toEqual([status, code])
    const { workflow } = (await call('GET', `/api/workflows/${id}`)).body
    expect([workflow.name, workflow.version]).toEqual(status === 200 ? ['three', 3] : ['two', 2])
  })

  test('a copy is a separate workflow', async () => {
    const { id, dag } = await made({ name: 'Original', timeout: 77 })
    const { status, body } = await call('POST', `/api/workflows/${id}/duplicate`, {})
    expect([status, body.workflow]).toEqual([
      201,
      expect.objectContaining({ name: 'Original (copy)', timeout: 77, version: 1, dag }),
    ])
    expect(body.workflow.id).not.toBe(id)
    expect((await call('POST', `/api/workflows/${id}/duplicate`, { name: 'Mine' })).body.workflow.name).toBe('Mine')
  })
})

test('five hundred nodes with a thousand edges fit into a request', async () => {
  const nodes = many(500)
  const edges = Object.keys(nodes)
    .slice(1)
    .map(to => ({ from: 'n0', to }))
  for (let at = 1; edges.length < 1_000; at++) edges.push({ from: 'n0', to: `n${(at % 499) + 1}` })
  const { status, body } = await call('POST', '/api/workflows/validate', { dag: { nodes, edges } })
  expect([status, body.valid, (body.order as string[][]).map(({ length }) => length)]).toEqual([200, true, [1, 499]])
})

test('lists have pages, are searched by name, and have graphs on request only', async () => {
  for (const at of [1, 2, 3]) await made({ name: `Wanted ${at}` })
  const first = (await call('GET', '/api/workflows?q=wanted&limit=2')).body
  expect(first.workflows.map(({ name, dag }) => [name, dag])).toHaveLength(2)
  expect(first.workflows.every(({ dag }) => dag === undefined)).toBe(true)
  const rest = (await call('GET', `/api/workflows?q=wanted&limit=2&after=${first.next_cursor}&include=dag`)).body
  expect([rest.workflows.length, rest.has_more]).toEqual([1, false])
  expect(rest.workflows[0]!.dag).toBeDefined()
  const all = (await call('GET', '/api/workflows?q=wanted&limit=3')).body
  expect([all.workflows.length, all.has_more, all.next_cursor]).toEqual([3, false, null])
  const names = [...first.workflows, ...rest.workflows].map(({ name }) => name)
  expect(names.toSorted()).toEqual(['Wanted 1', 'Wanted 2', 'Wanted 3'])
  const bad = await call('GET', '/api/workflows?after=nonsense')
  expect([bad.status, bad.body.error.param]).toEqual([400, 'after'])
  const worse = await call('GET', '/api/workflow-executions?after=nonsense')
  expect([worse.status, worse.body.error.param]).toEqual([400, 'after'])
})

test('lists of executions end at the last one, and a full page says whether there are more', async () => {
  const { id } = await made()
  for (const word of ['a', 'b', 'c']) await call('POST', `/api/workflows/${id}/execute`, { input_params: { word } })
  const page = async (query: string) => {
    const { body } = await call('GET', `/api/workflows/${id}/executions?${query}`)
    return body as unknown as {
      executions: { input_params: { word: string } }[]
      has_more: boolean
      next_cursor: string
    }
  }
  const first = await page('limit=2')
  expect([first.executions.map(one => one.input_params.word), first.has_more]).toEqual([['c', 'b'], true])
  const rest = await page(`limit=1&after=${first.next_cursor}`)
  expect([rest.executions.map(one => one.input_params.word), rest.has_more, rest.next_cursor]).toEqual([
    ['a'],
    false,
    null,
  ])
  const all = await page('limit=3')
  expect([all.executions.length, all.has_more, all.next_cursor]).toEqual([3, false, null])
})

test.for([
  ['webhook_url', 'no address', 'invalid_value'],
  ['webhook_events', ['workflow_execution.completed'], 'invalid_value'],
  ['priority', 101, 'invalid_value'],
  ['timeout', 86_401, 'invalid_value'],
  ['input_params', [], 'invalid_type'],
] as const)('an execution with %s of %j is refused', async ([name, value, code]) => {
  const { id } = await made({ dag: { nodes: { a: chat('x') }, edges: [] } })
  for (const path of [`/api/workflows/${id}/execute`, '/api/workflows/run']) {
    // The body of `execute` has no workflow, and events of a webhook need its URL.
    const dag = path.endsWith('run') ? { dag: { nodes: { a: chat('x') }, edges: [] } } : {}
    const body = { ...dag, [name]: value }
    const refused = await call('POST', path, body)
    expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([400, code, name])
  }
  expect((await call('POST', `/api/workflows/${id}/execute`, { webhook_url: null })).status).toBe(202)
})

describe('a deleted workflow', () => {
  test('is not found, and its executions are kept', async () => {
    const { id } = await made()
    const run = await call('POST', `/api/workflows/${id}/execute`, { input_params: { word: 'x' } })
    const path = `/api/workflow-executions/${run.body.execution.id}`
    expect((await call('GET', `${path}?wait=60`)).body.execution.status).toBe('completed')
    expect((await call('DELETE', `/api/workflows/${id}`)).body).toEqual({ id, object: 'workflow', deleted: true })
    expect((await call('GET', `/api/workflows/${id}`)).status).toBe(404)
    expect((await call('DELETE', `/api/workflows/${id}`)).status).toBe(404)
    const kept = { workflow_id: id, workflow_name: 'A chain', status: 'completed' }
    expect((await call('GET', path)).body.execution).toMatchObject(kept)
    const { executions } = (await call('GET', `/api/workflow-executions?workflow_id=${id}`)).body
    expect(executions).toMatchObject([kept])
  })

  test('must not be running, unless the deletion is forced', async () => {
    const { id } = await made({ dag: { nodes: { a: chat('mode:slow,ms=60000') }, edges: [] } })
    const { execution } = (await call('POST', `/api/workflows/${id}/execute`, {})).body
    const refused = await call('DELETE', `/api/workflows/${id}`)
    expect([refused.status, refused.body.error.code]).toEqual([409, 'conflict'])
    expect((await call('DELETE', `/api/workflows/${id}?force=true`)).status).toBe(200)
    expect((await call('GET', `/api/workflow-executions/${execution.id}`)).body.execution.status).toBe('cancelled')
  })
})

test('a key stands for the request as sent, even after the workflow changed', async () => {
  const { id } = await made()
  const headers = { 'idempotency-key': newId('req') }
  const body = { input_params: { word: 'x' } }
  const first = await call('POST', `/api/workflows/${id}/execute`, body, { headers })
  await call('PATCH', `/api/workflows/${id}`, { name: 'another' })
  const again = await call('POST', `/api/workflows/${id}/execute`, body, { headers })
  expect([first.status, again.status, again.body.execution.id]).toEqual([202, 202, first.body.execution.id])
  const other = await call('POST', `/api/workflows/${(await made()).id}/execute`, body, { headers })
  expect([other.status, other.body.error.code]).toEqual([422, 'idempotency_key_reused'])
})

test('the inputs of an execution are checked before anything runs, and defaults are filled in', async () => {
  const { id } = await made({
    parameters: { word: { type: 'string', default: 'dog' }, n: { type: 'integer', required: false } },
  })
  const wrong = await call('POST', `/api/workflows/${id}/execute`, { input_params: { n: 'x' } })
  expect([wrong.status, wrong.body.error]).toEqual([
    400,
    expect.objectContaining({ code: 'invalid_type', param: 'input_params.n' }),
  ])
  const run = (await call('POST', `/api/workflows/${id}/execute`)).body.execution
  expect(run).toMatchObject({ status: 'pending', outputs: null, error: null, input_params: { word: 'dog' } })
  const bare = await call('POST', `/api/workflows/${(await made()).id}/execute`, {})
  expect([bare.status, bare.body.error]).toEqual([
    400,
    expect.objectContaining({ code: 'missing_required_parameter', param: 'input_params.word' }),
  ])
})

describe('another organization', () => {
  let secret: string
  beforeAll(async () => {
    const log = openLog('error')
    const store = await openAdminStore(app.dataDir, log)
    const accounts = openAccounts({ store, keys: openStoredKeys(app.dataDir), log })
    const organization = await accounts.createOrganization({
      name: newId('org'),
      requestsPerMinute: 0,
      jobsPerMinute: 0,
    })
    secret = (await accounts.issue({ organizationId: organization.id, name: 'all', scopes: [...scopes] })).secret
    await store.close()
  })

  test('gets the same answer as for a workflow that does not exist', async () => {
    const workflow = await made()
    const run = await call('POST', `/api/workflows/${workflow.id}/execute`, { input_params: { word: 'x' } })
    const execution = run.body.execution.id
    await call('GET', `/api/workflow-executions/${execution}?wait=60`)
    const asked: [string, string, unknown?][] = [
      ...(['', '/executions'] as const).map((end): [string, string] => ['GET', `/api/workflows/:wf${end}`]),
      ['PUT', '/api/workflows/:wf', { name: 'x', dag: chain }],
      ['PATCH', '/api/workflows/:wf', { name: 'x' }],
      ['DELETE', '/api/workflows/:wf?force=true'],
      ['POST', '/api/workflows/:wf/duplicate', {}],
      ['POST', '/api/workflows/:wf/execute', {}],
      ...(['', '/nodes', '/nodes/a', '/events'] as const).map((end): [string, string] => [
        'GET',
        `/api/workflow-executions/:exec${end}`,
      ]),
      ['POST', '/api/workflow-executions/:exec/cancel', {}],
      ['POST', '/api/workflow-executions/:exec/retry', {}],
      ['DELETE', '/api/workflow-executions/:exec'],
    ]
    for (const [method, path, body] of asked) {
      const answers = await Promise.all(
        [
          [workflow.id, execution],
          [newId('wf'), newId('exec')],
        ].map(async ([wf, exec]) => {
          const answer = await call(method, path.replace(':wf', wf!).replace(':exec', exec!), body, { token: secret })
          return [answer.status, JSON.stringify(answer.body).replace(/(req|wf|exec)_[0-9A-Z]{26}/g, '$1')]
        }),
      )
      expect([method, path, answers[0]]).toEqual([method, path, answers[1]])
      expect([method, path, answers[0]![0]]).toEqual([method, path, 404])
    }
    expect((await call('GET', '/api/workflows', undefined, { token: secret })).body.workflows).toEqual([])
    const listed = await call('GET', `/api/workflow-executions?workflow_id=${workflow.id}`, undefined, {
      token: secret,
    })
    expect(listed.body.executions).toEqual([])
    expect((await call('GET', `/api/workflows/${workflow.id}`)).status).toBe(200)
  })
})

test('a narrowed or revoked token begins no further execution, and those it began are completed', async () => {
  const path = `/api/organizations/${app.organizationId}/tokens`
  const issued = await app.fetch(path, {
    body: { name: 'brief', scopes: ['user:read', 'user:write'], models: ['fake'] },
  })
  const { secret: token, token: brief } = (await issued.json()) as { secret: string; token: { id: string } }
  const nodes = { a: chat('mode:slow,ms=700'), b: chat('${nodes.a.result.id}') }
  const begun = await call('POST', '/api/workflows/run', { dag: { nodes, edges: [] } }, { token })
  const { id } = begun.body.execution
  await app.fetch(`${path}/${brief.id}`, { method: 'PATCH', body: { models: ['other'] } })
  expect((await call('POST', `/api/workflows/run`, { dag: { nodes, edges: [] } }, { token })).status).toBe(400)
  await app.fetch(`${path}/${brief.id}`, { method: 'DELETE' })
  expect((await call('POST', `/api/workflows/run`, { dag: { nodes, edges: [] } }, { token })).status).toBe(401)
  expect((await call('GET', `/api/workflow-executions/${id}`)).body.execution).toMatchObject({ finished_at: null })
  const done = await call('GET', `/api/workflow-executions/${id}?wait=60`)
  expect(done.body.execution).toMatchObject({ status: 'completed', token_id: brief.id })
})

test('models that a token may not use do not exist for it, in validation, execution and repetition', async () => {
  const issued = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, {
    body: { name: 'narrow', scopes: ['user:read', 'user:write'], models: ['other'] },
  })
  const { secret: token } = (await issued.json()) as { secret: string }
  const dag = { nodes: { a: chat('x') }, edges: [] }
  const { id } = await made({ dag })
  expect(codes((await call('GET', `/api/workflows/${id}`, undefined, { token })).body)).toEqual(['unknown_model a'])
  expect((await call('POST', `/api/workflows/${id}/execute`, {}, { token })).status).toBe(400)
  expect((await call('POST', '/api/workflows/run', { dag }, { token })).status).toBe(400)
  const run = (await call('POST', `/api/workflows/${id}/execute`, {})).body.execution
  await call('GET', `/api/workflow-executions/${run.id}?wait=60`)
  const again = await call('POST', `/api/workflow-executions/${run.id}/retry`, { from: 'start' }, { token })
  expect([again.status, again.body.error.code]).toEqual([400, 'invalid_graph'])
})

test.for(['__proto__', 'constructor', 'prototype', '', ' ', 'a\\u0000b', 'a\\u007fb', 'a\\nb', 'a\\u2028b'])(
  'a node cannot be named %j',
  async name => {
    // As text: an object in this program cannot have a member __proto__.
    const node = '{"model_id":"fake","task":"std/completion","inputs":{"prompt":"x"}}'
    const body = (nodes: string) => `{"dag":{"nodes":{"a":${node},"${nodes}":${node}}}}`
    const refused = await call('POST', '/api/workflows/run', body(name))
    expect([refused.status, refused.body.error.code]).toEqual([400, 'invalid_value'])
    expect((await call('POST', '/api/workflows/run', body('b'))).status).toBe(202)
  },
)

test('the versions of a workflow are listed in pages, and only to its organization', async () => {
  const { id } = await made({ name: 'First' })
  await call('PATCH', `/api/workflows/${id}`, { name: 'Second' })
  await call('PATCH', `/api/workflows/${id}`, { timeout: 60 })
  const listed = async (query = '') => {
    const { body } = await call('GET', `/api/workflows/${id}/versions${query}`)
    const { versions, next_cursor: next } = body as unknown as { versions: Answer['workflow'][]; next_cursor: string }
    return { versions: versions.map(({ version, name }) => [version, name]), next }
  }
  const all = [
    [3, 'Second'],
    [2, 'Second'],
    [1, 'First'],
  ]
  expect(await listed()).toEqual({ versions: all, next: null })
  expect(await listed('?limit=2')).toEqual({ versions: all.slice(0, 2), next: '2' })
  expect(await listed('?limit=2&after=2')).toEqual({ versions: all.slice(2), next: null })
  expect((await call('GET', `/api/workflows/${id}/versions?after=x`)).status).toBe(400)
  expect((await call('GET', `/api/workflows/${newId('wf')}/versions`)).status).toBe(404)
})

test('a parameter cannot be named __proto__', async () => {
  const refused = await call(
    'POST',
    '/api/workflows',
    '{"name":"x","dag":{"nodes":{}},"parameters":{"__proto__":{"type":"string"}}}',
  )
  expect([refused.status, refused.body.error.param]).toEqual([400, 'parameters.__proto__'])
})
