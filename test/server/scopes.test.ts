import { afterAll, beforeAll, expect, test } from 'vitest'
import { openAccounts } from '../../core/accounts/accounts.ts'
import { openStoredKeys } from '../../core/accounts/keys.ts'
import { newId } from '../../core/ids.ts'
import { openLog } from '../../core/log.ts'
import { openAdminStore } from '../../core/store/sqlite/admin.ts'
import { type Scope, scopes } from '../../core/store/store.ts'
import { routeTable } from '../../server/routes.ts'
import { startApp, type TestApp } from '../_app.ts'
import { full } from '../_full.ts'

const routes = routeTable()

/** The scope of each endpoint, written from the specification and the contract, not from the code. */
const written: Record<string, string> = {
  'POST /std/v1/chat/completions': 'user:write',
  'POST /std/v1/completions': 'user:write',
  'POST /std/v1/responses': 'user:write',
  'GET /std/v1/responses/:id': 'user:read',
  'DELETE /std/v1/responses/:id': 'user:write',
  'POST /std/v1/responses/:id/cancel': 'user:write',
  'POST /std/v1/responses/input_tokens': 'user:write',
  'GET /std/v1/responses/:id/input_items': 'user:read',
  'POST /std/v1/embeddings': 'user:write',
  'POST /std/v1/rerank': 'user:write',
  'POST /std/v1/score': 'user:write',
  'POST /std/v1/moderations': 'user:write',
  'POST /std/v2/chat': 'user:write',
  'POST /std/v1/embed': 'user:write',
  'POST /std/v2/embed': 'user:write',
  'GET /anthropic': 'public',
  'POST /anthropic/v1/messages': 'user:write',
  'POST /anthropic/v1/messages/count_tokens': 'user:write',
  'GET /anthropic/v1/models': 'user:read',
  'GET /anthropic/v1/models/**:id': 'user:read',
  'POST /std/v1/images/generations': 'user:write',
  'POST /std/v1/images/edits': 'user:write',
  'POST /std/v1/files': 'user:write',
  'GET /std/v1/files': 'user:read',
  'GET /std/v1/files/:id': 'user:read',
  'GET /std/v1/files/:id/content': 'user:read',
  'DELETE /std/v1/files/:id': 'user:write',
  'POST /std/v1/uploads': 'user:write',
  'POST /std/v1/uploads/:id/parts': 'user:write',
  'POST /std/v1/uploads/:id/complete': 'user:write',
  'POST /std/v1/uploads/:id/cancel': 'user:write',
  'POST /std/v1/images/variations': 'user:write',
  'POST /std/v1/audio/speech': 'user:write',
  'GET /std/v1/audio/voices': 'user:read',
  'POST /std/v1/audio/transcriptions': 'user:write',
  'POST /std/v1/audio/translations': 'user:write',
  // Its audio is work, although a WebSocket begins with a GET.
  'GET /std/v1/realtime': 'user:write',
  'GET /std/v1/models': 'user:read',
  'POST /std/v1/videos': 'user:write',
  'GET /std/v1/videos': 'user:read',
  'GET /std/v1/videos/:id': 'user:read',
  'GET /std/v1/videos/:id/content': 'user:read',
  'DELETE /std/v1/videos/:id': 'user:write',
  'POST /std/v1/videos/:id/remix': 'user:write',
  'POST /ollama/api/chat': 'user:write',
  'POST /ollama/api/generate': 'user:write',
  'POST /ollama/api/embed': 'user:write',
  'POST /ollama/api/embeddings': 'user:write',
  'GET /ollama/api/tags': 'user:read',
  'GET /ollama/api/ps': 'user:read',
  'POST /ollama/api/show': 'user:read',
  'POST /ollama/api/pull': 'admin:write',
  'POST /ollama/api/push': 'admin:write',
  'POST /ollama/api/create': 'admin:write',
  'POST /ollama/api/copy': 'admin:write',
  'DELETE /ollama/api/delete': 'admin:write',
  'GET /ollama': 'public',
  'GET /ollama/api/version': 'public',
  'POST /replicate/v1/predictions': 'user:write',
  'POST /replicate/v1/models/:owner/:name/predictions': 'user:write',
  'GET /replicate/v1/predictions': 'user:read',
  'GET /replicate/v1/predictions/:id': 'user:read',
  'POST /replicate/v1/predictions/:id/cancel': 'user:write',
  'GET /replicate/v1/stream/:org/:id': 'public',
  'GET /replicate/v1/models': 'user:read',
  'GET /replicate/v1/models/:owner/:name': 'user:read',
  'GET /replicate/v1/models/:owner/:name/versions': 'user:read',
  'GET /replicate/v1/account': 'user:read',
  'GET /replicate/v1/webhooks/default/secret': 'admin:read',
  'GET /replicate/v1/models/:owner/:name/versions/:id': 'user:read',
  'POST /replicate/v1/files': 'user:write',
  'GET /replicate/v1/files': 'user:read',
  'GET /replicate/v1/files/:id': 'user:read',
  'DELETE /replicate/v1/files/:id': 'user:write',
  'GET /std/v1/models/**:id': 'user:read',
  'GET /api/model-status': 'user:read',
  'GET /api/plan': 'user:read',
  'GET /api/tasks': 'user:read',
  'GET /api/voice/models': 'user:read',
  'GET /api/model-catalog': 'admin:read',
  'POST /api/models': 'admin:write',
  'GET /api/model-downloads': 'admin:read',
  'DELETE /api/model-downloads/:id': 'admin:write',
  'GET /api/engines': 'admin:read',
  'GET /api/engine-setups/:name': 'admin:read',
  'POST /api/engine-setups/:name': 'admin:write',
  'DELETE /api/engine-setups/:name': 'admin:write',
  'GET /api/gpu-setup': 'admin:read',
  'POST /api/gpu-setup': 'admin:write',
  'DELETE /api/gpu-setup': 'admin:write',
  'DELETE /api/models/**:id': 'admin:write',
  'GET /api/models/**:id': 'admin:read',
  'POST /api/models/**:id/benchmark': 'admin:write',
  'GET /api/gpu': 'admin:read',
  'POST /api/gpu/pause': 'admin:write',
  'POST /api/gpu/resume': 'admin:write',
  'POST /api/models/**:id/load': 'admin:write',
  'POST /api/models/**:id/unload': 'admin:write',
  'GET /api/me': 'user:read',
  'GET /api/organizations/:organization/usage': 'admin:read',
  'POST /api/jobs': 'user:write',
  'GET /api/jobs/:id/stream': 'user:read',
  'GET /api/jobs/:id': 'user:read',
  'POST /api/jobs/:id/cancel': 'user:write',
  'GET /api/jobs': 'user:read',
  'DELETE /api/jobs/:id': 'user:write',
  'POST /api/jobs/:id/retry': 'user:write',
  'GET /api/jobs/:id/logs': 'user:read',
  'GET /api/jobs/:id/preview': 'user:read',
  'GET /api/jobs/:id/events': 'user:read',
  'GET /api/events': 'user:read',
  'POST /api/workflows': 'user:write',
  'GET /api/workflows': 'user:read',
  'POST /api/workflows/validate': 'user:write',
  'POST /api/workflows/estimate': 'user:write',
  'POST /api/workflows/:id/estimate': 'user:write',
  'POST /api/workflows/run': 'user:write',
  'GET /api/workflows/:id': 'user:read',
  'GET /api/workflows/:id/versions': 'user:read',
  'PUT /api/workflows/:id': 'user:write',
  'PATCH /api/workflows/:id': 'user:write',
  'DELETE /api/workflows/:id': 'user:write',
  'POST /api/workflows/:id/duplicate': 'user:write',
  'POST /api/workflows/:id/execute': 'user:write',
  'GET /api/workflows/:id/executions': 'user:read',
  'GET /api/workflow-executions': 'user:read',
  'GET /api/workflow-executions/:id': 'user:read',
  'GET /api/workflow-executions/:id/compare': 'user:read',
  'GET /api/workflow-executions/:id/nodes': 'user:read',
  'GET /api/workflow-executions/:id/nodes/:node': 'user:read',
  'GET /api/workflow-executions/:id/nodes/:node/items': 'user:read',
  'GET /api/workflow-executions/:id/events': 'user:read',
  'POST /api/workflow-executions/:id/cancel': 'user:write',
  'POST /api/workflow-executions/:id/retry': 'user:write',
  'POST /api/workflow-executions/:id/nodes/:node/resolve': 'user:write',
  'GET /api/approvals': 'user:read',
  'GET /api/approvals/:id': 'user:read',
  'DELETE /api/workflow-executions/:id': 'user:write',
  'POST /api/prompt-rewrite': 'user:write',
  // Its tools need user:write besides.
  'POST /mcp': 'user:read',
  'POST /slug/**:slug': 'user:write',
  'POST /slug/queue/submit/**:slug': 'user:write',
  'GET /slug/requests/:id': 'user:read',
  'GET /slug/requests/:id/logs': 'user:read',
  'GET /slug/requests/:id/status': 'user:read',
  'GET /slug/requests/:id/status/stream': 'user:read',
  // It changes nothing.
  'POST /slug/requests/batch': 'user:read',
  'POST /slug/requests/:id/cancel': 'user:write',
  'PUT /slug/requests/:id/cancel': 'user:write',
  'POST /api/organizations': 'admin:write',
  'GET /api/organizations': 'admin:read',
  'GET /api/organizations/:organization': 'admin:read',
  'PATCH /api/organizations/:organization': 'admin:write',
  'DELETE /api/organizations/:organization': 'admin:write',
  'POST /api/organizations/:organization/suspend': 'admin:write',
  'POST /api/organizations/:organization/resume': 'admin:write',
  'GET /api/organizations/:organization/limits': 'admin:read',
  'PATCH /api/organizations/:organization/limits': 'admin:write',
  'GET /api/organizations/:organization/members': 'admin:read',
  'POST /api/organizations/:organization/members': 'admin:write',
  'GET /api/organizations/:organization/members/:user': 'admin:read',
  'PATCH /api/organizations/:organization/members/:user': 'admin:write',
  'DELETE /api/organizations/:organization/members/:user': 'admin:write',
  'GET /api/organizations/:organization/audit': 'admin:read',
  'POST /api/organizations/:organization/tokens': 'admin:write',
  'GET /api/organizations/:organization/tokens': 'admin:read',
  'GET /api/organizations/:organization/tokens/:id': 'admin:read',
  'PATCH /api/organizations/:organization/tokens/:id': 'admin:write',
  'DELETE /api/organizations/:organization/tokens/:id': 'admin:write',
  'POST /api/organizations/:organization/tokens/:id/revoke': 'admin:write',
  'POST /api/organizations/:organization/tokens/:id/rotate': 'admin:write',
  'POST /api/webhooks': 'admin:write',
  'GET /api/webhooks': 'admin:read',
  'GET /api/webhooks/:id': 'admin:read',
  'PATCH /api/webhooks/:id': 'admin:write',
  'DELETE /api/webhooks/:id': 'admin:write',
  'POST /api/webhooks/:id/rotate': 'admin:write',
  'POST /api/webhooks/:id/test': 'admin:write',
  'GET /api/webhooks/:id/deliveries': 'admin:read',
  'POST /api/webhooks/:id/deliveries/:delivery/redeliver': 'admin:write',
  'GET /api/webhook-deliveries': 'admin:read',
  'POST /api/webhook-deliveries/:delivery/redeliver': 'admin:write',
  'GET /api/organizations/:organization/webhook-secret': 'admin:read',
  'POST /api/organizations/:organization/webhook-secret/rotate': 'admin:write',
  'GET /std/v1/batches': 'user:read',
  'POST /std/v1/batches': 'user:write',
  'GET /std/v1/batches/:id': 'user:read',
  'POST /std/v1/batches/:id/cancel': 'user:write',
  'GET /std/v1/webhook_endpoints': 'admin:read',
  'POST /std/v1/webhook_endpoints': 'admin:write',
  'GET /std/v1/webhook_endpoints/:id': 'admin:read',
  'POST /std/v1/webhook_endpoints/:id': 'admin:write',
  'DELETE /std/v1/webhook_endpoints/:id': 'admin:write',
  'POST /std/v1/webhook_endpoints/:id/rotate_secret': 'admin:write',
  'POST /std/v1/webhook_endpoints/:id/test': 'admin:write',
  'GET /std/v1/webhook_event_types': 'admin:read',
  'GET /.well-known/jwks.json': 'public',
  'GET /api/system/status': 'admin:read',
  'GET /api/system/logs': 'admin:read',
  'GET /api/system/history': 'admin:read',
  'GET /api/system/doctor': 'admin:read',
  'GET /api/system/config': 'admin:read',
  'GET /api/system/backups': 'admin:read',
  'GET /api/system/licenses': 'user:read',
  'GET /api/conversations': 'user:read',
  'POST /api/conversations': 'user:write',
  'GET /api/conversations/:id': 'user:read',
  'PATCH /api/conversations/:id': 'user:write',
  'DELETE /api/conversations/:id': 'user:write',
  'GET /api/conversations/:id/export': 'user:read',
  'PATCH /api/conversation-folders': 'user:write',
  'GET /api/conversations/:id/links': 'user:read',
  'POST /api/conversations/:id/links': 'user:write',
  'DELETE /api/conversations/:id/links/:link': 'user:write',
  'GET /shared/:token': 'public',
  'GET /shared/:token/conversation': 'public',
  'GET /shared/:token/files/:file': 'public',
  'GET /api/library': 'user:read',
  'GET /api/library/:id': 'user:read',
  'DELETE /api/library/:id': 'user:write',
  'GET /approvals/:token': 'public',
  'POST /approvals/:token': 'public',
  'POST /events/:token': 'public',
  'GET /files/:id/:name': 'public',
  'PUT /files/:id/:name': 'public',
  'OPTIONS /files/:id/:name': 'public',
  'PUT /files/:id/:name/:part': 'public',
  'OPTIONS /files/:id/:name/:part': 'public',
  'POST /files/:id/:name/complete': 'public',
  'POST /fal/queue/**:path': 'user:write',
  'GET /fal/queue/**:path': 'user:read',
  'PUT /fal/queue/**:path': 'user:write',
  'POST /fal/run/**:path': 'user:write',
  'POST /fal/rest/storage/upload/initiate': 'user:write',
  'POST /fal/rest/storage/upload/initiate-multipart': 'user:write',
  'POST /fal/rest/storage/auth/token': 'user:write',
  // The handler checks the storage token.
  'POST /fal/cdn/files/upload': 'public',
  'POST /fal/cdn/files/upload/multipart': 'public',
  // The caller needs the scope of the target address.
  'GET /fal/proxy': 'public',
  'POST /fal/proxy': 'public',
  'PUT /fal/proxy': 'public',
  'GET /livez': 'public',
  'GET /readyz': 'public',
  'GET /metrics': 'loopback',
  'GET /openapi.json': 'public',
  'GET /infer.schema.json': 'public',
  'GET /': 'public',
  'GET /console': 'public',
  'POST /api/session': 'public',
  'GET /api/session': 'public',
  'DELETE /api/session': 'public',
  'POST /api/session/codes': 'user:read',
  'GET /docs': 'public',
  'GET /docs/start.js': 'public',
  'GET /docs/scalar.js': 'public',
  'GET /docs/grafana.json': 'public',
  'GET /docs/alerts.yaml': 'public',
  'GET /docs/style.css': 'public',
  'GET /docs/images/:name': 'public',
  'GET /docs/configuration': 'public',
  'GET /docs/guides': 'public',
  'GET /docs/guides/:topic': 'public',
}

let app: TestApp
beforeAll(async () => void (app = await startApp()))
afterAll(() => app[Symbol.asyncDispose]())

const token = async (wanted: Scope[]) => {
  const made = await app.fetch(`/api/organizations/${app.organizationId}/tokens`, {
    body: { name: 'x', scopes: wanted },
  })
  return ((await made.json()) as { secret: string }).secret
}
const filled = (path: string, organization = app.organizationId, id: string = newId('tok')) =>
  path
    .replace(':organization', organization)
    .replace(':user', newId('user'))
    .replace(/(\*\*)?:id/, id)
const withoutId = (text: string) => text.replace(/req_[0-9A-Z]{26}/g, 'req')

test('the table of routes equals this list', () => {
  expect(Object.fromEntries(routes.map(route => [`${route.method} ${route.path}`, route.scope]))).toEqual(written)
})

/** Sends a request to every route that needs a scope; expects 403 that names the scope exactly where it lacks. */
async function expectScopes(subset: readonly Scope[], by: { token: string | null; headers?: Record<string, string> }) {
  for (const route of routes.filter(({ scope }) => scope !== 'public')) {
    const needed = route.scope === 'loopback' ? 'admin:read' : route.scope
    for (const path of [route.path, ...(route.aliases ?? [])]) {
      const response = await app.fetch(filled(path), {
        method: route.method,
        ...by,
        ...(route.method === 'GET' || route.method === 'DELETE' ? {} : { body: {} }),
      })
      // A stream of events does not end by itself.
      const streamed = response.headers.get('content-type')?.startsWith('text/event-stream')
      const body = streamed ? String(await response.body?.cancel()) : await response.text()
      const refused = response.status === 403 && body.includes('insufficient_scope')
      expect([route.method, path, subset.join(), response.status === 401, refused], body).toEqual([
        route.method,
        path,
        subset.join(),
        false,
        !subset.includes(needed as Scope),
      ])
      if (refused) expect(body).toContain(`"required_scope":"${needed}"`)
    }
  }
}

test('every route × sets of scopes: accepted with the scope, else 403 that names it', async () => {
  const subsets = Array.from({ length: 16 }, (_, bits) => scopes.filter((_, at) => bits & (1 << at)))
  // A route has one scope: each set of one and each that lacks one shows it; the others only repeat it.
  for (const subset of subsets.filter(({ length }) => (full ? length > 0 : length === 1 || length === 3)))
    await expectScopes(subset, { token: await token(subset) })
  // Two thousand requests; some look at all programs of the machine.
})

test('a session of the console may do on every route what its token may do', async () => {
  const ownPage = { 'x-infer-console': '1', 'sec-fetch-site': 'same-origin' }
  for (const scope of scopes) {
    const begun = await app.fetch('/api/session', {
      token: null,
      headers: ownPage,
      body: { token: await token([scope]) },
    })
    const cookie = begun.headers.get('set-cookie')!.split(';')[0]!
    await expectScopes([scope], { token: null, headers: { ...ownPage, cookie } })
    expect((await app.fetch('/api/session', { token: null, headers: { ...ownPage, cookie } })).status).toBe(200)
  }
})

test.each([
  ['no token', null, 'missing_api_key'],
  ['a wrong token', 'sk-infer-wrong', 'invalid_api_key'],
])('%s: 401 on every route that is not public', async (_, secret, code) => {
  for (const route of routes.filter(({ scope }) => scope !== 'public' && scope !== 'loopback')) {
    const response = await app.fetch(filled(route.path), {
      method: route.method,
      token: secret,
      ...(route.method === 'GET' ? {} : { body: {} }),
    })
    const body = (await response.json()) as { error: { code: string } | string; code?: string }
    // Ollama's errors are texts, with the code beside them.
    const given = typeof body.error === 'string' ? body.code : body.error.code
    // After too many wrong tokens a minute the address gets 429 instead.
    expect([
      [401, code],
      [429, 'rate_limit'],
    ]).toContainEqual([response.status, given])
    if (response.status === 401) expect(response.headers.get('www-authenticate')).toBe('Bearer')
  }
})

test('a job of another organization answers byte for byte like an unknown one', async () => {
  const mine = (await (
    await app.fetch('/api/jobs', { body: { task: 'std/embeddings', model_id: 'fake', inputs: { input: 'a' } } })
  ).json()) as { id: string }
  const other = await otherOrganization()
  for (const [method, path] of [
    ['GET', '/api/jobs/:id'],
    ['POST', '/api/jobs/:id/cancel'],
  ] as const) {
    const absent = newId('job')
    const answers = await Promise.all(
      [mine.id, absent].map(async id => {
        const response = await app.fetch(path.replace(':id', id), {
          method,
          token: other.secret,
          ...(method === 'POST' ? { body: {} } : {}),
        })
        return [response.status, withoutId(await response.text()).replaceAll(id, 'ID')]
      }),
    )
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]![0]).toBe(404)
  }
})

test('another organization is refused, existing or not, with the same message', async () => {
  const other = await otherOrganization()
  for (const route of routes.filter(({ path }) => path.includes(':organization'))) {
    const answers = await Promise.all(
      [app.organizationId, newId('org')].map(async organization => {
        const response = await app.fetch(filled(route.path, organization), {
          method: route.method,
          token: other.secret,
          ...(route.method === 'GET' || route.method === 'DELETE'
            ? {}
            : { body: (route.example as object | undefined) ?? {} }),
        })
        return [response.status, withoutId(await response.text())]
      }),
    )
    expect(answers[0]).toEqual(answers[1])
    expect(answers[0]![0]).toBe(403)
  }
})

test('a token of another organization is not found under the own one', async () => {
  const other = await otherOrganization()
  const rootId = ((await (await app.fetch('/api/me')).json()) as { token: { id: string } }).token.id
  for (const id of [rootId, newId('tok')]) {
    const response = await app.fetch(`/api/organizations/${other.organizationId}/tokens/${id}`, { token: other.secret })
    expect(response.status).toBe(404)
  }
})

/** The parameters of paths below /api/organizations, as a caller could guess them. */
const foreignPaths = (organization: string, id: string, user: string) =>
  routes
    .filter(({ path }) => path.startsWith('/api/organizations/:organization'))
    .map(route => ({
      route,
      path: route.path.replace(':organization', organization).replace(':user', user).replace(':id', id),
    }))

test('every route of an organization × every set of scopes × own, foreign and absent: foreign is absent', async () => {
  const other = await otherOrganization()
  const made = await app.fetch(`/api/organizations/${app.organizationId}/members`, {
    body: { name: 'A', email: `${newId('user')}@example.com` },
  })
  const { user } = (await made.json()) as { user: { id: string } }
  const rootId = ((await (await app.fetch('/api/me')).json()) as { token: { id: string } }).token.id
  for (const bits of Array.from({ length: 15 }, (_, at) => at + 1)) {
    const subset = scopes.filter((_, at) => bits & (1 << at))
    const created = await app.fetch(`/api/organizations/${other.organizationId}/tokens`, {
      token: other.secret,
      body: { name: 'x', scopes: subset },
    })
    const { secret } = (await created.json()) as { secret: string }
    const foreign = foreignPaths(app.organizationId, rootId, user.id)
    const absent = foreignPaths(newId('org'), newId('tok'), newId('user'))
    for (const [at, { route, path }] of foreign.entries()) {
      const answers = await Promise.all(
        [path, absent[at]!.path].map(async to => {
          const body = (route.example as object | undefined) ?? {}
          const hasBody = route.method === 'POST' || route.method === 'PATCH'
          const response = await app.fetch(to, { method: route.method, token: secret, ...(hasBody ? { body } : {}) })
          return [response.status, withoutId(await response.text())]
        }),
      )
      const name = `${route.method} ${route.path} with ${subset.join()}`
      expect([name, ...answers[0]!]).toEqual([name, ...answers[1]!])
      expect([name, answers[0]![0]]).toEqual([name, 403])
      const code = subset.includes(route.scope as Scope) ? 'organization_mismatch' : 'insufficient_scope'
      expect([name, answers[0]![1]]).toEqual([name, expect.stringContaining(`"${code}"`)])
    }
  }
})

test('objects of another organization are not found under the own one, byte for byte like absent ones', async () => {
  const other = await otherOrganization()
  const base = (organization: string) => `/api/organizations/${organization}`
  const made = await app.fetch(`${base(app.organizationId)}/members`, {
    body: { name: 'B', email: `${newId('user')}@example.com` },
  })
  const { user } = (await made.json()) as { user: { id: string } }
  const rootId = ((await (await app.fetch('/api/me')).json()) as { token: { id: string } }).token.id
  const own = routes.filter(({ path }) => /:organization\/.*:(id|user)/.test(path))
  expect(own).toHaveLength(8)
  for (const route of own) {
    const answers = await Promise.all(
      [
        [rootId, user.id],
        [newId('tok'), newId('user')],
      ].map(async ([id, userId]) => {
        const path = route.path
          .replace(':organization', other.organizationId)
          .replace(':user', userId!)
          .replace(':id', id!)
        const hasBody = route.method === 'POST' || route.method === 'PATCH'
        const body = (route.example as object | undefined) ?? {}
        const options = { method: route.method, token: other.secret, ...(hasBody ? { body } : {}) }
        const response = await app.fetch(path, options)
        return [
          response.status,
          withoutId(await response.text())
            .replaceAll(id!, 'ID')
            .replaceAll(userId!, 'USER'),
        ]
      }),
    )
    expect([route.path, ...answers[0]!]).toEqual([route.path, ...answers[1]!])
    expect([route.path, answers[0]![0]]).toEqual([route.path, 404])
  }
})

test.each(['status', 'id', 'organization_id', 'plan', 'created_at', 'created_by', 'secret', 'deleted', '__proto__x'])(
  "no body sets '%s' where it is not documented",
  async field => {
    const unset = routes.filter(
      ({ path, method, example }) =>
        path.startsWith('/api/organizations') && method !== 'GET' && method !== 'DELETE' && example !== undefined,
    )
    const documented: Record<string, RegExp> = {
      status: /^PATCH .*\/tokens\/:id$/,
      plan: /^(POST|PATCH) \/api\/organizations(\/:organization)?$/,
    }
    for (const route of unset) {
      const name = `${route.method} ${route.path}`
      if (documented[field]?.test(name)) continue
      const body = { ...(route.example as object), [field]: 'suspended' }
      const response = await app.fetch(filled(route.path), { method: route.method, body })
      const text = await response.text()
      expect([name, response.status, text.includes('"unknown_parameter"')], text).toEqual([name, 400, true])
    }
  },
)

async function otherOrganization(): Promise<{ organizationId: string; secret: string }> {
  const log = openLog('error')
  const store = await openAdminStore(app.dataDir, log)
  try {
    const accounts = openAccounts({ store, keys: openStoredKeys(app.dataDir), log })
    const organization = await accounts.createOrganization({
      name: newId('org'),
      requestsPerMinute: 0,
      jobsPerMinute: 0,
    })
    const { secret } = await accounts.issue({ organizationId: organization.id, name: 'all', scopes: [...scopes] })
    return { organizationId: organization.id, secret }
  } finally {
    await store.close()
  }
}
