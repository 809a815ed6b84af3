import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fakeModel, startApp, type TestApp } from '../../../_app.ts'
import { makeOrganization } from '../../_organization.ts'
import { ask, painters, small } from '../../surfaces/slug/_painter.ts'

let app: TestApp
let global: TestApp
let restricted: string
let elsewhere: Server
const chat = { messages: [{ role: 'user', content: 'Hello' }] }
const dagOf = (model_id: string) => ({
  nodes: { write: { model_id, task: 'std/chat-completion', inputs: chat } },
  edges: [],
})

beforeAll(async () => {
  const answer = {
    id: 'c',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  }
  elsewhere = createServer((_, response) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)),
  )
  await new Promise<void>(resolve => elsewhere.listen(0, '127.0.0.1', resolve))
  const { port } = elsewhere.address() as AddressInfo
  const remote = (id: string, more: object = {}) => ({
    id,
    engine: 'remote',
    url: `http://127.0.0.1:${port}/v1`,
    tasks: ['std/chat-completion'],
    ...more,
  })
  app = await startApp({
    region: 'EU',
    models: [fakeModel('here'), ...painters, remote('there', { region: 'US' }), remote('somewhere')],
  })
  global = await startApp({ models: [fakeModel('here')] })
  restricted = (await makeOrganization(app, { organization: { region: 'EU' } })).secret
})
afterAll(async () => {
  await Promise.all([app[Symbol.asyncDispose](), global[Symbol.asyncDispose]()])
  elsewhere.close()
})

const header = (region: string) => ({ 'x-region': region })

/** Every kind of request that starts work, for a model. */
type RequestOf = (model: string) => { path: string; body: object }
const requests: [string, RequestOf][] = [
  ['a chat', model => ({ path: '/std/v1/chat/completions', body: { model, ...chat } })],
  ['a job', model => ({ path: '/api/jobs', body: { model_id: model, task: 'std/chat-completion', inputs: chat } })],
  ['an execution', model => ({ path: '/api/workflows/run', body: { dag: dagOf(model) } })],
  [
    'a prompt',
    model => ({ path: '/api/prompt-rewrite', body: { prompt: 'a cat mode:rewrites', rewriter_model: model } }),
  ],
]
const rows: [string, string, string | undefined, string, number, string?][] = [
  ['the region of the machine', 'here', 'EU', 'root', 200],
  ['Global', 'there', 'Global', 'root', 200],
  ['no region', 'somewhere', undefined, 'root', 200],
  ['the region of a remote model', 'there', 'US', 'root', 200],
  ['another region than that of the machine', 'here', 'US', 'root', 503, 'no_capacity'],
  ['another region than that of a remote model', 'there', 'EU', 'root', 503, 'no_capacity'],
  ['a remote model without a region', 'somewhere', 'EU', 'root', 503, 'no_capacity'],
  ['a restricted organization in its region', 'here', undefined, 'restricted', 200],
  ['a restricted organization elsewhere', 'there', undefined, 'restricted', 403, 'region_restricted'],
  ['a restricted organization that asks for another region', 'there', 'US', 'restricted', 403, 'region_restricted'],
  ['a restricted organization and no region', 'somewhere', 'Global', 'restricted', 403, 'region_restricted'],
  ['an unknown region', 'here', 'Mars', 'root', 400, 'invalid_value'],
  ['a region in other letters', 'here', 'eu', 'root', 400, 'invalid_value'],
]
type Row = (typeof rows)[number] extends [string, ...infer Rest] ? [string, string, RequestOf, ...Rest] : never
test.each(requests.flatMap(([what, of]) => rows.map(([title, ...row]): Row => [what, title, of, ...row])))(
  '%s with %s',
  async (_, __, of, model, region, who, status, code) => {
    const { path, body } = of(model)
    const answer = await ask(app, path, {
      body,
      ...(region === undefined ? {} : { headers: header(region) }),
      ...(who === 'restricted' ? { token: restricted } : {}),
    })
    const accepted = answer.status === 202 || (answer.status === 502 && path.endsWith('rewrite')) ? 200 : answer.status
    expect([accepted, answer.body.error?.code === 'worker_error' ? undefined : answer.body.error?.code]).toEqual([
      status,
      code,
    ])
    if (status !== 503) return
    expect(answer.headers.get('x-should-retry')).toBe('false')
    expect(answer.headers.get('retry-after')).toBe(null)
    expect(answer.body.error.message).toContain('Regions of the models here: EU, US.')
  },
)

test('a request by slug and one of fal obey the header', async () => {
  for (const path of ['/slug/fake/solo', '/fal/queue/fake/solo']) {
    const [there, here] = await Promise.all(
      ['US', 'EU'].map(region => ask(app, path, { body: small, headers: header(region) })),
    )
    expect([there!.status, here!.status < 300]).toEqual([503, true])
  }
})

test('the region can be a field of a job, which keeps it for a retry', async () => {
  const body = { model_id: 'here', task: 'std/chat-completion', inputs: chat }
  expect((await ask(app, '/api/jobs', { body: { ...body, region: 'US' } })).body.error.code).toBe('no_capacity')
  const both = await ask(app, '/api/jobs', { body: { ...body, region: 'US' }, headers: header('EU') })
  expect([both.status, both.body.error.param]).toEqual([400, 'region'])
  const { body: job } = await ask(app, '/api/jobs', { body: { ...body, region: 'EU' } })
  await ask(app, `/api/jobs/${job.id}?wait=20`)
  expect((await ask(app, `/api/jobs/${job.id}/retry`, { method: 'POST' })).status).toBe(202)
  const refused = await ask(app, `/api/jobs/${job.id}/retry`, { method: 'POST', headers: header('US') })
  expect([refused.status, refused.body.error.param]).toEqual([400, 'region'])
})

test('the region can be a field of an execution, besides that of the workflow', async () => {
  const run = (region: string) => ask(app, '/api/workflows/run', { body: { dag: dagOf('here'), region } })
  expect([(await run('EU')).status, (await run('US')).status, (await run('Mars')).status]).toEqual([202, 503, 400])
})

const workflow = async (region: string, model: string) =>
  (await ask(app, '/api/workflows', { body: { name: 'one', region, dag: dagOf(model) } })).body

test('a workflow in a region runs on its models only; creating it warns of others', async () => {
  const wrong = await workflow('EU', 'there')
  expect(wrong.diagnostics.warnings).toMatchObject([
    {
      code: 'model_outside_region',
      severity: 'warning',
      node_id: 'write',
      message: "Node 'write': the workflow runs in the region EU, and the model 'there' runs in US.",
    },
  ])
  const refused = await ask(app, `/api/workflows/${wrong.workflow.id}/execute`, { body: {} })
  expect([refused.status, refused.body.error.code]).toEqual([503, 'no_capacity'])
  const right = await workflow('EU', 'here')
  expect(right.diagnostics.warnings).toEqual([])
  const { body } = await ask(app, `/api/workflows/${right.workflow.id}/execute`, { body: {} })
  const ended = await ask(app, `/api/workflow-executions/${body.execution.id}?wait=20`)
  expect(ended.body.execution.status).toBe('completed')
  expect((await workflow('Global', 'there')).diagnostics.warnings).toEqual([])
})

test('validating a workflow warns of models outside its region', async () => {
  const { body } = await ask(app, '/api/workflows/validate', { body: { dag: dagOf('somewhere'), region: 'US' } })
  expect([body.valid, body.diagnostics.warnings[0].code]).toEqual([true, 'model_outside_region'])
})

test('the lists of models have the region of each', async () => {
  const regions = ({ body }: { body: { models?: object[]; data?: object[] } }) =>
    Object.fromEntries(
      (body.models ?? body.data!).map(one => {
        const { id, model_id, region } = one as { id?: string; model_id?: string; region: string | null }
        return [id ?? model_id, region]
      }),
    )
  const expected = { here: 'EU', there: 'US', somewhere: null }
  for (const path of ['/api/model-status', '/std/v1/models', '/api/system/status'])
    expect(regions(await ask(app, path))).toMatchObject(expected)
})

test('a server without a region has no models in one', async () => {
  const { status, body } = await ask(global, '/std/v1/chat/completions', {
    body: { model: 'here', ...chat },
    headers: header('EU'),
  })
  expect([status, body.error.message]).toEqual([503, expect.stringContaining('No model here has a region.')])
  expect((await ask(global, '/api/model-status')).body.models[0].region).toBe(null)
})
