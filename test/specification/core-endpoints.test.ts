import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestApp } from '../_app.ts'
import { ask, chat, dag, shortVideo, startSpecified } from './_specification.ts'

/** Sections 4.4 and 6 of the specification: each row of the table, with its scope, request and response. */

let app: TestApp
let organization: string
const secrets: Record<string, string> = {}
beforeAll(async () => {
  app = await startSpecified({ prompt_rewriting: { model: 'fake' } })
  organization = `/api/organizations/${app.organizationId}`
  for (const scope of ['user:read', 'user:write', 'admin:read', 'admin:write']) {
    const { body } = await ask(app, 'POST', `${organization}/tokens`, { name: scope, scopes: [scope] })
    secrets[scope] = body.secret
  }
})
afterAll(() => app[Symbol.asyncDispose]())

/** Sends the request with a token of each scope: only those with the scope may pass. */
async function onlyWith(scope: string, method: string, path: string, body?: unknown) {
  for (const other of Object.keys(secrets).filter(name => name !== scope)) {
    const refused = await ask(app, method, path, body, secrets[other])
    expect([other, refused.status, refused.body.error.code]).toEqual([other, 403, 'insufficient_scope'])
  }
  return ask(app, method, path, body, secrets[scope])
}

describe('4.4 Core endpoints', () => {
  test('GET /api/model-status, user:read: {models: [{model_id, spec_id, enabled, tasks}]}, with the slug mapping', async () => {
    const { status, body } = await onlyWith('user:read', 'GET', '/api/model-status')
    expect(status).toBe(200)
    for (const model of body.models)
      expect(model).toMatchObject({
        model_id: expect.any(String) as string,
        spec_id: expect.any(String) as string,
        enabled: true,
        tasks: expect.any(Array) as string[],
      })
    const demo = body.models.find(({ model_id }: { model_id: string }) => model_id === 'demo')
    expect(demo.slugs['slug/text-to-video']).toEqual(expect.any(String))
  })

  test('GET /api/voice/models, user:read: the list of voice models with their voices', async () => {
    const { status, body } = await onlyWith('user:read', 'GET', '/api/voice/models')
    expect(status).toBe(200)
    expect(body.models).toEqual(expect.any(Array))
  })

  test('POST /api/workflows, user:write: name, description optional, dag → 201 {workflow, diagnostics: {type_issues, warnings}}', async () => {
    const { status, body } = await onlyWith('user:write', 'POST', '/api/workflows', { name: 'w', dag })
    expect(status).toBe(201)
    expect(body).toMatchObject({
      workflow: { id: expect.any(String) as string, name: 'w' },
      diagnostics: { type_issues: [], warnings: [] },
    })
    const described = await ask(app, 'POST', '/api/workflows', { name: 'w', description: 'd', dag })
    expect([described.status, described.body.workflow.description]).toEqual([201, 'd'])
  })

  test('POST /api/workflows/{id}/execute, user:write: {input_params} → {execution}, status `pending`', async () => {
    const { body: made } = await ask(app, 'POST', '/api/workflows', { name: 'w', dag })
    const path = `/api/workflows/${made.workflow.id}/execute`
    const { body } = await onlyWith('user:write', 'POST', path, { input_params: {} })
    expect(body.execution).toMatchObject({ status: 'pending', outputs: null, error: null })
  })

  test('GET /api/workflow-executions/{id}: {execution}; after completion includes outputs of each node', async () => {
    const { body: made } = await ask(app, 'POST', '/api/workflows', { name: 'w', dag })
    const { body: begun } = await ask(app, 'POST', `/api/workflows/${made.workflow.id}/execute`, { input_params: {} })
    const { body } = await ask(app, 'GET', `/api/workflow-executions/${begun.execution.id}?wait=30`)
    expect(body.execution).toMatchObject({
      status: 'completed',
      outputs: { a: { result: expect.any(Object) as object } },
    })
  })

  test('POST /api/prompt-rewrite, user:write: rewrites a prompt', async () => {
    const { status, body } = await onlyWith('user:write', 'POST', '/api/prompt-rewrite', { prompt: 'a cat' })
    expect([status, body.original_prompt, typeof body.rewritten_prompt]).toEqual([200, 'a cat', 'string'])
  })

  test('GET /api/organizations/{orgId}/usage, admin:read: usage aggregates', async () => {
    const { status, body } = await onlyWith('admin:read', 'GET', `${organization}/usage`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      organization_id: app.organizationId,
      totals: { requests: expect.any(Number) as number },
    })
  })

  test('POST /api/organizations/{orgId}/tokens, admin:write: name, scopes → {token: {id, name, scopes, status}, secret}', async () => {
    const { body } = await onlyWith('admin:write', 'POST', `${organization}/tokens`, {
      name: 't',
      scopes: ['admin:write'],
    })
    expect(body).toMatchObject({
      token: { id: expect.any(String) as string, name: 't', scopes: ['admin:write'], status: 'active' },
      secret: expect.any(String) as string,
    })
  })

  test('a full interactive reference is served at /docs on the API', async () => {
    const page = await app.fetch('/docs', { token: null })
    expect([page.status, page.headers.get('content-type')]).toEqual([200, expect.stringContaining('text/html')])
  })
})

describe('2.9 Slugs', () => {
  test('model-status and /std/v1/models give the same slug of each model', async () => {
    const { models } = (await ask(app, 'GET', '/api/model-status')).body
    const { data } = (await ask(app, 'GET', '/std/v1/models')).body
    expect(data.map(({ id, slug }: { id: string; slug: string }) => [id, slug])).toEqual(
      models.map(({ model_id, slug }: { model_id: string; slug: string }) => [model_id, slug]),
    )
    expect(data.find(({ id }: { id: string }) => id === 'demo').slug).toBe('demo/text-to-image')
  })
})

describe('4.1 Streams', () => {
  test('the first delta of a choice has `refusal: null`, the others have none', async () => {
    const response = await app.fetch('/std/v1/chat/completions', { body: { ...chat, stream: true } })
    const deltas = (await response.text())
      .split('\n\n')
      .filter(event => event.startsWith('data: {'))
      .map(event => JSON.parse(event.slice(6)).choices[0].delta as object)
    expect(deltas[0]).toMatchObject({ role: 'assistant', refusal: null })
    expect(deltas.slice(1).filter(delta => 'refusal' in delta)).toEqual([])
  })
})

describe('2.2 Findings of a definition', () => {
  const node = (content: string, more: object = {}) => ({
    model_id: 'fake',
    task: 'std/chat-completion',
    inputs: { messages: [{ role: 'user', content }], ...more },
  })
  const validate = (nodes: object) => ask(app, 'POST', '/api/workflows/validate', { dag: { nodes, edges: [] } })

  // Decided: `implicit_dependency` is not reported, because definitions without edges are usual.
  test('a reference orders its nodes like an edge, and is no finding', async () => {
    const { body } = await validate({ a: node('Hi'), b: node('${nodes.a.result.choices[0].message.content}') })
    expect(body).toEqual({ valid: true, diagnostics: { type_issues: [], warnings: [] }, order: [['a'], ['b']] })
  })

  // Decided: an unknown input would change the result, an unknown member of a node does not.
  test('an unknown member of a node is a warning, an unknown input prevents execution', async () => {
    const { body } = await validate({ a: { ...node('Hi', { tempo: 3 }), colour: 1 } })
    expect(body.valid).toBe(false)
    expect(body.diagnostics).toMatchObject({
      warnings: [{ code: 'unknown_field', severity: 'warning', path: 'colour' }],
      type_issues: [{ code: 'unknown_input', severity: 'error', path: 'inputs.tempo' }],
    })
  })
})

describe('2.4 Jobs of an execution', () => {
  test('GET /api/jobs?workflow_execution_id= lists the jobs of its nodes and no others', async () => {
    const { body: made } = await ask(app, 'POST', '/api/workflows', { name: 'w', dag })
    const { body: begun } = await ask(app, 'POST', `/api/workflows/${made.workflow.id}/execute`, { input_params: {} })
    const { id } = (await ask(app, 'GET', `/api/workflow-executions/${begun.execution.id}?wait=30`)).body.execution
    const jobsOf = async (query: string) => {
      const { body } = await ask(app, 'GET', `/api/jobs?${query}`)
      return (body.jobs as { id: string }[]).map(job => job.id)
    }
    const { nodes } = (await ask(app, 'GET', `/api/workflow-executions/${id}/nodes`)).body
    expect(await jobsOf(`workflow_execution_id=${id}`)).toEqual([nodes[0].job_id])
    expect(await jobsOf(`workflow_execution_id=${id}&status=failed`)).toEqual([])
    expect(await jobsOf(`workflow_execution_id=${id}&kind=sync`)).toEqual([])
    expect(await jobsOf(`workflow_execution_id=${id}&metadata[a]=b`)).toEqual([])
    expect(await jobsOf('workflow_execution_id=exec_absent')).toEqual([])
  })
})

describe('1 Library', () => {
  // Decided: a result that is still kept never disappears from the library before its job does.
  test('a generated video is saved for as long as its job', async () => {
    const { body: job } = await ask(app, 'POST', '/api/jobs', {
      task: 'slug/text-to-video',
      model_id: 'demo',
      inputs: { ...shortVideo, resolution: '480p' },
    })
    const { body: ended } = await ask(app, 'GET', `/api/jobs/${job.id}?wait=30`)
    const { items } = (await ask(app, 'GET', '/api/library?kind=video')).body
    const item = items.find(({ job_id }: { job_id: string }) => job_id === job.id)
    expect(ended).toMatchObject({ status: 'completed', expires_at: expect.any(Number) })
    expect(item.expires_at).toBe(ended.expires_at)
  })
})

describe('4 Answers that the reference describes', () => {
  test('a range after the end of a file: 416', async () => {
    const form = new FormData()
    form.set('purpose', 'user_data')
    form.set('file', new Blob(['abc']), 'a.txt')
    const upload = await fetch(`${app.url}/std/v1/files`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${app.secret}` },
    })
    const { id } = (await upload.json()) as { id: string }
    const { status } = await app.fetch(`/std/v1/files/${id}/content`, { headers: { range: 'bytes=9-' } })
    const { body } = await ask(app, 'GET', '/openapi.json')
    expect([status, Object.keys(body.paths['/std/v1/files/{id}/content'].get.responses as object)]).toEqual([
      416,
      expect.arrayContaining(['206', '304', '416']),
    ])
  })

  test('a notification of the Model Context Protocol: 202', async () => {
    const { status } = await ask(app, 'POST', '/mcp', { jsonrpc: '2.0', method: 'notifications/initialized' })
    const { body } = await ask(app, 'GET', '/openapi.json')
    expect([status, Object.keys(body.paths['/mcp'].post.responses as object)]).toEqual([
      202,
      expect.arrayContaining(['202']),
    ])
  })
})

describe('6 Events', () => {
  test('results are obtained by polling', async () => {
    const { body: made } = await ask(app, 'POST', '/api/jobs', {
      task: 'std/embeddings',
      model_id: 'fake',
      inputs: { input: 'a' },
    })
    let polled = await ask(app, 'GET', `/api/jobs/${made.id}`)
    while (polled.body.status !== 'completed') polled = await ask(app, 'GET', `/api/jobs/${made.id}`)
    expect(polled.body.result.data).toHaveLength(1)
  })
})
