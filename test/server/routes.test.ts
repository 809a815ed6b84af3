import { expect, test } from 'vitest'
import { z } from 'zod'
import { taskRecords } from '../../core/tasks/registry.ts'
import { routeOf } from '../../server/http/request/route.ts'
import { routeTable } from '../../server/routes.ts'

const routes = routeTable()

/** Every route that begins work, and so counts against the limit of job submissions. Source: the API contract. */
const submissions = [
  'POST /api/jobs',
  'POST /api/jobs/:id/retry',
  'POST /api/workflow-executions/:id/retry',
  'POST /api/workflows/:id/execute',
  'POST /api/workflows/run',
  'POST /fal/queue/**:path',
  'PUT /fal/queue/**:path',
  'POST /fal/run/**:path',
  'POST /slug/**:slug',
  'POST /slug/queue/submit/**:slug',
  'POST /slug/requests/:id/cancel',
  'PUT /slug/requests/:id/cancel',
  'POST /slug/requests/batch',
  'POST /std/v1/audio/speech',
  'POST /std/v1/audio/transcriptions',
  'POST /std/v1/audio/translations',
  'POST /std/v1/batches',
  'POST /std/v1/chat/completions',
  'POST /std/v1/completions',
  'POST /std/v1/embeddings',
  'POST /std/v1/images/edits',
  'POST /std/v1/images/variations',
  'POST /std/v1/images/generations',
  'POST /std/v1/moderations',
  'POST /std/v1/rerank',
  'POST /std/v1/responses',
  'POST /std/v1/score',
  'POST /std/v1/videos',
  'POST /ollama/api/chat',
  'POST /ollama/api/embed',
  'POST /ollama/api/embeddings',
  'POST /ollama/api/generate',
  'POST /replicate/v1/models/:owner/:name/predictions',
  'POST /replicate/v1/predictions',
  'POST /std/v2/chat',
  'POST /std/v1/embed',
  'POST /std/v2/embed',
  'POST /anthropic/v1/messages',
]
const nameOf = ({ method, path }: { method: string; path: string }) => `${method} ${path}`

test('the routes that begin work count as job submissions, and no others', () => {
  const counted = routes.filter(({ bucket }) => bucket === 'jobs').map(nameOf)
  expect(counted.toSorted()).toEqual(submissions.toSorted())
  expect(new Set(routes.map(({ bucket }) => bucket))).toEqual(new Set(['api', 'jobs']))
})

test.each(taskRecords.flatMap(({ path }) => path ?? []))('the path of a task is a route: %s', path => {
  const posted = routeTable().filter(({ method }) => method === 'POST')
  expect(posted.map(route => route.path)).toContain(path)
})

test('no two routes have the same method and path', () => {
  const names = routes.flatMap(({ method, path, aliases = [] }) => [path, ...aliases].map(one => `${method} ${one}`))
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
})

test.each([
  ['without a scope', 'GET', undefined, 'has no scope'],
  ['that may begin work and has no bucket', 'POST', 'public', 'has no bucket'],
  ['that replaces something and has no bucket', 'PUT', 'public', 'has no bucket'],
] as const)('a route %s cannot be registered', (_, method, scope, message) => {
  const route = routeOf({ tag: 'x' })
  const facts = { summary: 'x', response: z.object({}), handle: () => ({}) }
  expect(() => route(`${method} /x`, scope as never, facts)).toThrow(message)
  expect(route('GET /x', 'public', facts)).toMatchObject({ method: 'GET', path: '/x', scope: 'public', bucket: 'api' })
})
