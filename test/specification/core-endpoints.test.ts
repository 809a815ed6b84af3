import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { TestApp } from '../_app.ts'
import { ask, dag, startSpecified } from './_specification.ts'

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
