import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { AdmissionRequest } from '../../core/admission/admission.ts'
import { Failure } from '../../core/failure.ts'
import { routeTable } from '../../server/routes.ts'
import { fakeModel, startApp, type TestApp } from '../_app.ts'

/** What admission was called with, and whether it refuses everything. */
const gate = vi.hoisted(() => ({ asked: [] as unknown[], closed: false }))
vi.mock('../../core/admission/admission.ts', async original => {
  const real = await original<typeof import('../../core/admission/admission.ts')>()
  return {
    ...real,
    openAdmission(...options: Parameters<typeof real.openAdmission>) {
      const admission = real.openAdmission(...options)
      return {
        ...admission,
        admit(...request: Parameters<typeof admission.admit>) {
          gate.asked.push(request[1])
          if (gate.closed) throw new Failure('no_capacity', 'Nothing is admitted in this test.')
          return admission.admit(...request)
        },
      }
    },
  }
})

const pixel =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQImWNgaGgAAAGEAQEDkg2VAAAAAElFTkSuQmCC'
const silence = 'data:audio/wav;base64,UklGRjQAAABXQVZFZm10IBAAAAABAAEAgD4AAIA+AAABAAgAZGF0YRAAAACAgICAgICAgICAgICAgICA'

let app: TestApp
let jobId: string
let workflowId: string
let executionId: string
const chat = { messages: [{ role: 'user', content: 'Hello' }] }
const dag = { nodes: { write: { model_id: 'fake', task: 'std/chat-completion', inputs: chat } }, edges: [] }

beforeAll(async () => {
  app = await startApp({
    // The admission that refuses below is that of this process: gateway processes have their own.
    gateway_processes: 1,
    models: [
      fakeModel('fake', []),
      fakeModel('judges', [], { tasks: ['std/chat-completion', 'std/moderation'] }),
      fakeModel('speaks', [], { tasks: ['std/audio-speech', 'std/audio-transcription', 'std/audio-translation'] }),
      fakeModel('draws', [], {
        tasks: ['slug/text-to-image', 'slug/image-to-image', 'slug/text-to-video'],
        slug: 'fake/draws',
      }),
    ],
  })
  const made = async (path: string, body: unknown) => (await (await app.fetch(path, { body })).json()) as never
  const ended = async (path: string) => void (await app.fetch(`${path}?wait=20`))
  ;({ id: jobId } = await made('/api/jobs', { task: 'std/chat-completion', model_id: 'fake', inputs: chat }))
  await ended(`/api/jobs/${jobId}`)
  const { workflow } = (await made('/api/workflows', { name: 'one', dag })) as { workflow: { id: string } }
  workflowId = workflow.id
  const { execution } = (await made(`/api/workflows/${workflowId}/execute`, {})) as { execution: { id: string } }
  executionId = execution.id
  await ended(`/api/workflow-executions/${executionId}`)
})
afterAll(() => app[Symbol.asyncDispose]())

/** A request for every route that begins work, and what admission must be called with. */
const requests: Record<string, { path: () => string; body?: unknown; work: AdmissionRequest }> = {
  'POST /std/v1/chat/completions': work('/std/v1/chat/completions', { model: 'fake', ...chat }, 'std/chat-completion'),
  'POST /std/v1/completions': work('/std/v1/completions', { model: 'fake', prompt: 'Hello' }, 'std/completion'),
  'POST /std/v1/responses': work('/std/v1/responses', { model: 'fake', input: 'Hello' }, 'std/chat-completion'),
  'POST /std/v1/embeddings': work('/std/v1/embeddings', { model: 'fake', input: 'Hello' }, 'std/embeddings'),
  'POST /std/v1/rerank': work('/std/v1/rerank', { model: 'fake', query: 'a', documents: ['b'] }, 'std/rerank'),
  'POST /std/v1/score': work('/std/v1/score', { model: 'fake', text_1: 'a', text_2: 'b' }, 'std/score'),
  'POST /std/v1/moderations': work('/std/v1/moderations', { input: 'a' }, 'std/moderation', 'judges'),
  'POST /std/v2/chat': work('/std/v2/chat', { model: 'fake', ...chat }, 'std/chat-completion'),
  'POST /std/v1/embed': work('/std/v1/embed', { model: 'fake', texts: ['a'] }, 'std/embeddings'),
  'POST /std/v2/embed': work('/std/v2/embed', { model: 'fake', texts: ['a'] }, 'std/embeddings'),
  'POST /anthropic/v1/messages': work(
    '/anthropic/v1/messages',
    { model: 'fake', max_tokens: 9, ...chat },
    'std/chat-completion',
  ),
  'POST /std/v1/audio/speech': work(
    '/std/v1/audio/speech',
    { model: 'speaks', input: 'Hello', response_format: 'wav' },
    'std/audio-speech',
    'speaks',
  ),
  'POST /std/v1/audio/transcriptions': work(
    '/std/v1/audio/transcriptions',
    { model: 'speaks', url: silence },
    'std/audio-transcription',
    'speaks',
  ),
  'POST /std/v1/audio/translations': work(
    '/std/v1/audio/translations',
    { model: 'speaks', url: silence },
    'std/audio-translation',
    'speaks',
  ),
  'POST /std/v1/images/generations': {
    ...work('/std/v1/images/generations', { model: 'draws', prompt: 'A cat' }, 'std/image-generation', 'draws'),
    work: { kind: 'job', task: 'std/image-generation', modelId: 'draws' },
  },
  'POST /std/v1/images/edits': {
    ...work('/std/v1/images/edits', { model: 'draws', prompt: 'A cat', image: pixel }, 'std/image-edit', 'draws'),
    work: { kind: 'job', task: 'std/image-edit', modelId: 'draws' },
  },
  'POST /std/v1/images/variations': {
    ...work('/std/v1/images/variations', { model: 'draws', image: pixel }, 'std/image-edit', 'draws'),
    work: { kind: 'job', task: 'std/image-edit', modelId: 'draws' },
  },
  'POST /api/prompt-rewrite': work(
    '/api/prompt-rewrite',
    { prompt: 'A cat', rewriter_model: 'fake' },
    'std/chat-completion',
  ),
  'POST /slug/**:slug': generation('/slug/fake/draws/text-to-image'),
  'POST /slug/queue/submit/**:slug': generation('/slug/queue/submit/fake/draws/text-to-image'),
  'POST /fal/queue/**:path': generation('/fal/queue/fake/draws/text-to-image'),
  'POST /fal/run/**:path': generation('/fal/run/fake/draws/text-to-image'),
  'POST /std/v1/videos': {
    ...work('/std/v1/videos', { model: 'draws', prompt: 'A cat' }, 'slug/text-to-video', 'draws'),
    work: { kind: 'job', task: 'slug/text-to-video', modelId: 'draws' },
  },
  'POST /ollama/api/chat': work('/ollama/api/chat', { model: 'fake', ...chat }, 'std/chat-completion'),
  'POST /ollama/api/generate': work('/ollama/api/generate', { model: 'fake', prompt: 'Hello' }, 'std/chat-completion'),
  'POST /ollama/api/embed': work('/ollama/api/embed', { model: 'fake', input: 'Hello' }, 'std/embeddings'),
  'POST /ollama/api/embeddings': work('/ollama/api/embeddings', { model: 'fake', prompt: 'Hello' }, 'std/embeddings'),
  'POST /replicate/v1/predictions': {
    path: () => '/replicate/v1/predictions',
    body: { version: 'draws', input: { prompt: 'A cat' } },
    work: { kind: 'job', task: 'slug/text-to-image', modelId: 'draws' },
  },
  'POST /replicate/v1/models/:owner/:name/predictions': {
    path: () => '/replicate/v1/models/local/fake/predictions',
    body: { input: { prompt: 'Hello' } },
    work: { kind: 'job', task: 'std/chat-completion', modelId: 'fake' },
  },
  'POST /api/jobs': {
    path: () => '/api/jobs',
    body: { task: 'std/chat-completion', model_id: 'fake', inputs: chat },
    work: { kind: 'job', task: 'std/chat-completion', modelId: 'fake' },
  },
  'POST /api/jobs/:id/retry': {
    path: () => `/api/jobs/${jobId}/retry`,
    body: {},
    work: { kind: 'job', task: 'std/chat-completion', modelId: 'fake' },
  },
  'POST /api/workflows/run': execution(() => '/api/workflows/run', { dag }),
  'POST /api/workflows/:id/execute': execution(() => `/api/workflows/${workflowId}/execute`, {}),
  'POST /api/workflow-executions/:id/retry': execution(() => `/api/workflow-executions/${executionId}/retry`, {
    from: 'start',
  }),
}

/** It begins work, but the specification counts it as an API request. */
const noSubmission = 'POST /api/prompt-rewrite'

/** These count as submissions, but they begin nothing in the request. */
const beginNothing = [
  'POST /slug/requests/:id/cancel',
  'PUT /slug/requests/:id/cancel',
  'POST /slug/requests/batch',
  // Its lines are admitted one by one when their turn comes: test/server/surfaces/openai/batches.test.ts.
  'POST /std/v1/batches',
  // The cancel of fal's API.
  'PUT /fal/queue/**:path',
]

function work(path: string, body: object, task: AdmissionRequest['task'], modelId = 'fake') {
  return { path: () => path, body, work: { kind: 'call' as const, task, modelId } }
}
function generation(path: string) {
  const asked: AdmissionRequest = { kind: 'job', task: 'slug/text-to-image', modelId: 'draws' }
  return { path: () => path, body: { prompt: 'A cat' }, work: asked }
}
function execution(path: () => string, body: object) {
  return { path, body, work: { kind: 'node' as const, task: 'std/chat-completion' as const, modelId: 'fake' } }
}

test('every route that begins work has a request in this test', () => {
  const routes = routeTable().filter(({ bucket }) => bucket === 'jobs')
  const names = [noSubmission, ...routes.map(({ method, path }) => `${method} ${path}`)]
  expect(names.toSorted()).toEqual([...Object.keys(requests), ...beginNothing].toSorted())
})

test.each(Object.entries(requests))(
  '%s calls admission, and begins nothing when it refuses',
  async (_, { path, body, work }) => {
    gate.asked.length = 0
    gate.closed = true
    try {
      const answer = await app.fetch(path(), { body })
      expect(await answer.text()).toContain('Nothing is admitted in this test.')
      expect(answer.status).toBe(path().startsWith('/anthropic/') ? 529 : 503)
    } finally {
      gate.closed = false
    }
    expect(gate.asked).toContainEqual(expect.objectContaining(work))
    const { jobs } = (await (await app.fetch('/api/system/status')).json()) as { jobs: object }
    expect(jobs).toEqual({ pending: 0, processing: 0 })
  },
)

test('with Prefer: respond-async the same work is admitted as a job', async () => {
  gate.asked.length = 0
  const answer = await app.fetch('/std/v1/chat/completions', {
    body: { model: 'fake', ...chat },
    headers: { prefer: 'respond-async' },
  })
  expect(answer.status).toBe(202)
  expect(gate.asked).toMatchObject([{ kind: 'job', task: 'std/chat-completion', modelId: 'fake' }])
})
