import { writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { replicateVersion } from '../../server/surfaces/replicate/view.ts'
import { startApp, type TestApp } from '../_app.ts'
import { testWithFfmpeg } from '../_ffmpeg.ts'
import { exampleOf, examplesPath, formOf, openExampleRun, storedExamples } from './_example-run.ts'
import { compiler, type Description, operationsOf } from './_reference.ts'

/** Operations whose example is not sent here, each with the reason. */
const unsent: Record<string, string> = {
  'POST /std/v1/moderations': 'no toy model moderates; test/server/openapi.test.ts checks the shape of its answer',
  'POST /std/v1/audio/translations':
    'no toy model translates; test/server/openapi.test.ts checks the shape of its answer',
  'GET /std/v1/realtime': 'a WebSocket; test/clients/realtime.test.ts opens it',
  'GET /fal/proxy': 'always an error, unless its header names another operation, which is answered then',
  'POST /fal/proxy': 'as for GET',
  'PUT /fal/proxy': 'as for GET',
  'POST /replicate/v1/files': 'a form; sent here by hand',
  'POST /ollama/api/pull': 'downloads a model; test/clients/ollama.test.ts does so from a stand-in for the hub',
  'POST /ollama/api/push': 'always an error',
  'POST /ollama/api/create': 'as for push',
  'POST /ollama/api/copy': 'as for push',
  'DELETE /ollama/api/delete': 'as for push',
  'GET /api/system/doctor': 'takes seconds; test/server/surfaces/native/system-inspection.test.ts runs the checks',
  'POST /std/v1/videos/{id}/remix': 'as for push',
  'POST /api/models':
    'downloads a model; test/server/surfaces/native/model-administration.test.ts does so from a stand-in for the hub',
  'DELETE /api/model-downloads/{id}': 'as for POST /api/models',
  'DELETE /api/models/{id}': 'as for POST /api/models',
  'GET /api/jobs/{id}/stream': 'of a request with `Prefer: resume`; test/server/work/resume.test.ts resumes some',
  'POST /api/gpu-setup': 'needs a GPU; test/server/surfaces/native/gpu-setup.test.ts has a stand-in',
  'DELETE /api/gpu-setup': 'as for POST',
  'GET /api/engine-setups/{name}': 'as for POST /api/engine-setups/{name}',
  'POST /api/engine-setups/{name}':
    'downloads an engine; test/server/surfaces/native/engines.test.ts installs one from a stand-in for its releases',
  'DELETE /api/engine-setups/{name}': 'as for POST',
  'GET /approvals/{token}': 'a page for people; test/server/surfaces/native/approvals.test.ts fills it in',
  'POST /approvals/{token}': 'the form of that page',
  'GET /shared/{token}': 'a page for people; test/console/chat.test.ts reads it',
  'GET /shared/{token}/files/{file}':
    'the bytes of an image; test/server/surfaces/native/shared-conversations.test.ts reads it',
  'POST /api/session': 'sets the cookie of a page; test/server/console/session.test.ts does so',
  'GET /api/session': 'needs the cookie of a page',
  'DELETE /api/session': 'needs the cookie of a page',
}

type Ids = Record<string, string>
const tokens = '/api/organizations/{organization}/tokens'
const soon = { timeout: 60_000 }

let app: TestApp
let api: Description
let run: ReturnType<typeof openExampleRun>
let organization: string

beforeAll(async () => {
  // Without models in the configuration the server has the toy models, which the examples name.
  app = await startApp({ models: undefined as never })
  api = (await (await app.fetch('/openapi.json', { token: null })).json()) as Description
  run = openExampleRun(app, api)
  organization = app.organizationId
})
afterAll(() => app[Symbol.asyncDispose]())

const idOf = ({ id }: { id: string }): Ids => ({ id })
/** A job that stays in the queue until it is cancelled. */
const waiting = { slug: 'demo/text-to-image', inputs: { prompt: 'A cat on a mat' }, not_before: 4_000_000_000 }
const slug = 'demo/text-to-image'

describe('every example of the reference is answered as documented', soon, () => {
  test('text in the form of other vendors', async () => {
    await run.send('POST /std/v1/embed')
    await run.send('POST /std/v2/embed')
    await run.send('POST /anthropic/v1/messages/count_tokens')
    await run.send('GET /anthropic')
    for (const name of ['POST /std/v2/chat', 'POST /anthropic/v1/messages']) {
      await run.send(name)
      const { example } = api.paths[name.slice('POST '.length)]!.post!.requestBody!.content['application/json']!
      expect((await run.stream(name, { body: { ...(example as object), stream: true } })).length).toBeGreaterThan(2)
    }
    await run.send('GET /anthropic/v1/models')
    await run.send('GET /anthropic/v1/models/{id}', { path: { id: 'infer/tiny-chat' } })
  })

  test('text', async () => {
    const streamed = { stream: true, stream_options: { include_usage: true } }
    for (const [path, events] of [
      ['/std/v1/chat/completions', 4],
      ['/std/v1/completions', 2],
      ['/std/v1/embeddings', 0],
      ['/std/v1/rerank', 0],
      ['/std/v1/score', 0],
    ] as const) {
      const name = `POST ${path}`
      await run.send(name)
      const { example } = api.paths[path]!.post!.requestBody!.content['application/json']!
      if (events > 0)
        expect((await run.stream(name, { body: { ...(example as object), ...streamed } })).length).toBeGreaterThan(
          events,
        )
      await run.send(name, { headers: { prefer: 'respond-async' }, status: 202 })
    }
  })

  test('audio', async () => {
    await run.send('GET /std/v1/audio/voices')
    const speech = 'POST /std/v1/audio/speech'
    await run.send(speech)
    const spoken = { model: 'infer/tiny-speech', input: 'Hello!', response_format: 'wav' }
    await run.stream(speech, { body: { ...spoken, stream_format: 'sse' } })
    const wav = Buffer.from(await (await app.fetch('/std/v1/audio/speech', { body: spoken })).arrayBuffer())
    const transcription = 'POST /std/v1/audio/transcriptions'
    await run.send(transcription)
    const heard = { model: 'infer/tiny-transcription', url: `data:audio/wav;base64,${wav.toString('base64')}` }
    await run.stream(transcription, { body: { ...heard, stream: true } })
    await run.send(transcription, { body: { ...heard, response_format: 'srt' } })
  })

  test('images', async () => {
    await run.send('POST /std/v1/images/generations')
    await run.send('POST /std/v1/images/edits')
    await run.send('POST /std/v1/images/variations')
    await run.stream('POST /std/v1/images/generations', {
      body: { model: 'infer/demo', prompt: 'A cat', size: '64x64', stream: true },
    })
  })

  test('models', async () => {
    const path = { id: 'infer/tiny-chat' }
    for (const name of [
      'GET /std/v1/models',
      'GET /api/model-status',
      'GET /api/gpu',
      'GET /api/tasks',
      'GET /api/voice/models',
      'POST /api/session/codes',
      'GET /api/model-catalog',
      'GET /api/model-downloads',
      'GET /api/gpu-setup',
      'GET /api/engines',
    ])
      await run.send(name)
    await run.send('GET /api/plan', { query: { model: 'infer/tiny-chat' } })
    await run.send('GET /std/v1/models/{id}', { path })
    await run.send('POST /api/models/{id}/load', { path, query: { wait: '30' } })
    await run.send('POST /api/models/{id}/benchmark', { path })
    await run.send('GET /api/models/{id}', { path })
    await run.send('POST /api/models/{id}/unload', { path, query: { wait: '30' } })
    await run.send('POST /api/gpu/pause', { body: { devices: ['cpu'], for: 60 } })
    await run.send('POST /api/gpu/resume', { body: {} })
  })

  test('jobs and their events', async () => {
    const path = idOf(await run.send('POST /api/jobs'))
    await run.send('GET /api/jobs/{id}', { path, query: { wait: '60' } })
    await run.send('GET /api/jobs')
    await run.send('GET /api/jobs/{id}/logs', { path })
    await run.send('GET /api/jobs/{id}/preview', { path })
    await run.stream('GET /api/jobs/{id}/events', { path })
    const again = idOf(await run.send('POST /api/jobs/{id}/retry', { path }))
    await run.stream('GET /api/events', { query: { after: 'evt_0' } }, event =>
      JSON.stringify(event).includes('"type":"job.completed"'),
    )
    await run.stream('GET /api/jobs/{id}/events', { path: again })
    await run.send('POST /api/jobs/{id}/cancel', { path: idOf(await run.send('POST /api/jobs', { body: waiting })) })
    await run.send('DELETE /api/jobs/{id}', { path })
  })

  test('the Model Context Protocol', async () => {
    await run.send('POST /mcp')
  })

  test('requests by slug', async () => {
    await run.send('POST /slug/{slug}', { path: { slug } })
    await run.send('POST /slug/{slug}', { path: { slug }, headers: { prefer: 'wait=60' }, status: 200 })
    const submitted = await run.send<{ request_id: string }>('POST /slug/queue/submit/{slug}', { path: { slug } })
    const path = { id: submitted.request_id }
    await run.stream('GET /slug/requests/{id}/status/stream', { path, query: { logs: '1' } })
    await run.send('GET /slug/requests/{id}', { path })
    await run.send('GET /slug/requests/{id}/status', { path, query: { logs: '1' } })
    await run.send('GET /slug/requests/{id}/logs', { path })
    await run.send('POST /slug/requests/batch', { body: { request_ids: [path.id] } })
    await run.send('POST /slug/requests/batch')
    await run.send('POST /api/prompt-rewrite')
    for (const method of ['POST', 'PUT']) {
      const { queue_id } = await run.send<Ids>('POST /api/jobs', { body: waiting })
      await run.send(`${method} /slug/requests/{id}/cancel`, { path: { id: queue_id! }, status: 202 })
      await run.send(`${method} /slug/requests/{id}/cancel`, { path, status: 400 })
      await run.send(`${method} /slug/requests/{id}/cancel`, { path: { id: 'q_x' }, status: 404 })
    }
  })

  test('requests of fal clients', async () => {
    const { request_id } = await run.send<Ids>('POST /fal/queue/{path}', { path: { path: slug } })
    const request = `${slug}/requests/${request_id}`
    await run.stream('GET /fal/queue/{path}', { path: { path: `${request}/status/stream` }, query: { logs: '1' } })
    await run.send('GET /fal/queue/{path}', { path: { path: request } })
    await run.send('GET /fal/queue/{path}', { path: { path: `${request}/status` } })
    const { queue_id } = await run.send<Ids>('POST /api/jobs', { body: waiting })
    await run.send('PUT /fal/queue/{path}', { path: { path: `${slug}/requests/${queue_id}/cancel` } })
    await run.send('POST /fal/run/{path}', { path: { path: slug } })
    await run.stream('POST /fal/run/{path}', { path: { path: `${slug}/stream` } })
  })

  test('requests of Ollama clients', async () => {
    for (const what of ['chat', 'generate', 'embed', 'embeddings', 'show']) await run.send(`POST /ollama/api/${what}`)
    for (const what of ['tags', 'ps', 'version']) await run.send(`GET /ollama/api/${what}`)
    await run.send('GET /ollama')
  })

  test('requests of Replicate clients', async () => {
    const path = { owner: 'infer', name: 'tiny-chat' }
    const { id, urls } = await run.send<{ id: string; urls: { stream: string } }>('POST /replicate/v1/predictions')
    await run.send('POST /replicate/v1/models/{owner}/{name}/predictions', { path, headers: { prefer: 'wait' } })
    await run.send('GET /replicate/v1/predictions')
    const [organizationId] = urls.stream.split('/').slice(-2)
    const query = Object.fromEntries(new URL(urls.stream).searchParams)
    const stream = 'GET /replicate/v1/stream/{org}/{id}'
    await run.send(stream, { path: { org: organizationId!, id }, query, token: null })
    await run.send('GET /replicate/v1/predictions/{id}', { path: { id } })
    await run.send('POST /replicate/v1/predictions/{id}/cancel', { path: { id } })
    for (const what of ['', '/{owner}/{name}', '/{owner}/{name}/versions'])
      await run.send(`GET /replicate/v1/models${what}`, { path })
    const version = replicateVersion({ id: 'infer/tiny-chat' })
    await run.send('GET /replicate/v1/models/{owner}/{name}/versions/{id}', { path: { ...path, id: version } })
    await run.send('GET /replicate/v1/account')
    await run.send('GET /replicate/v1/webhooks/default/secret')
    const form = new FormData()
    form.append('content', new Blob(['bytes']), 'a.txt')
    const uploaded = await fetch(`${app.url}/replicate/v1/files`, {
      method: 'POST',
      body: form,
      headers: { authorization: `Bearer ${app.secret}` },
    })
    const file = idOf((await uploaded.json()) as { id: string })
    await run.send('GET /replicate/v1/files')
    await run.send('GET /replicate/v1/files/{id}', { path: file })
    await run.send('DELETE /replicate/v1/files/{id}', { path: file })
  })

  test('uploads and files', async () => {
    const bytes = { body: 'bytes', headers: { 'content-type': 'text/plain' }, token: null }
    const { token } = await run.send<Ids>('POST /fal/rest/storage/auth/token')
    await run.send('POST /fal/cdn/files/upload', { ...bytes, token: token! })
    await run.send('POST /fal/cdn/files/upload/multipart', { ...bytes, token: token! })
    const { upload_url, file_url } = await run.send<Ids>('POST /fal/rest/storage/upload/initiate')
    await run.send('PUT /files/{id}/{name}', { ...bytes, ...addressOf(upload_url!) })
    expect(await run.send('GET /files/{id}/{name}', { ...addressOf(file_url!), token: null })).toBe('bytes')
    const parts = await run.send<Ids>('POST /fal/rest/storage/upload/initiate-multipart')
    const { path, query } = addressOf(parts.upload_url!)
    for (const part of ['1', '2'])
      await run.send('PUT /files/{id}/{name}/{part}', { ...bytes, path: { ...path, part }, query })
    await run.send('POST /files/{id}/{name}/complete', { path, query, token: null })
    await run.send('OPTIONS /files/{id}/{name}', { path })
    await run.send('OPTIONS /files/{id}/{name}/{part}', { path: { ...path, part: '1' } })
  })

  test('responses', async () => {
    await run.send('POST /std/v1/responses')
    await run.send('POST /std/v1/responses/input_tokens')
    const body = { model: 'infer/tiny-chat', input: 'Hello!', background: true }
    const path = idOf(await run.send<{ id: string }>('POST /std/v1/responses', { body }))
    await run.send('GET /std/v1/responses/{id}', { path })
    await run.send('GET /std/v1/responses/{id}/input_items', { path })
    await run.send('POST /std/v1/responses/{id}/cancel', { path })
    await run.send('DELETE /std/v1/responses/{id}', { path })
  })

  test('batches', async () => {
    const line = (at: number) =>
      JSON.stringify({
        custom_id: `${at}`,
        method: 'POST',
        url: '/v1/chat/completions',
        body: { model: 'infer/tiny-chat', messages: [{ role: 'user', content: 'Hello!' }] },
      })
    const form = new FormData()
    form.set('purpose', 'batch')
    form.set('file', new Blob([Array.from({ length: 200 }, (_, at) => line(at)).join('\n')]), 'in.jsonl')
    const headers = { authorization: `Bearer ${app.secret}` }
    const uploaded = await fetch(`${app.url}/std/v1/files`, { method: 'POST', body: form, headers })
    const { id: input_file_id } = (await uploaded.json()) as { id: string }
    const body = { input_file_id, endpoint: '/v1/chat/completions', completion_window: '24h' }
    const path = idOf(await run.send<{ id: string }>('POST /std/v1/batches', { body }))
    await run.send('GET /std/v1/batches')
    await run.send('GET /std/v1/batches/{id}', { path })
    await run.send('POST /std/v1/batches/{id}/cancel', { path })
  })

  test('stored files and uploads in parts', async () => {
    const path = idOf(await run.send('POST /std/v1/files'))
    await run.send('GET /std/v1/files')
    await run.send('GET /std/v1/files/{id}', { path })
    expect(await run.send('GET /std/v1/files/{id}/content', { path })).toBe('Hello!\n')
    await run.send('DELETE /std/v1/files/{id}', { path })
    const begun = { bytes: 5, filename: 'a.txt', mime_type: 'text/plain', purpose: 'user_data' }
    const of = { path: idOf(await run.send('POST /std/v1/uploads', { body: begun })) }
    const body = '--b\r\nContent-Disposition: form-data; name="data"; filename="part"\r\n\r\nhello\r\n--b--\r\n'
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    const { id } = await run.send<Ids>('POST /std/v1/uploads/{id}/parts', { ...of, body, headers })
    await run.send('POST /std/v1/uploads/{id}/complete', { ...of, body: { part_ids: [id] } })
    await run.send('POST /std/v1/uploads/{id}/cancel', { path: idOf(await run.send('POST /std/v1/uploads')) })
  })

  test('workflows and executions', async () => {
    const { workflow } = await run.send<{ workflow: { id: string } }>('POST /api/workflows')
    const path = idOf(workflow)
    await run.send('GET /api/workflows', { query: { include: 'dag' } })
    await run.send('POST /api/workflows/validate')
    await run.send('POST /api/workflows/estimate')
    await run.send('POST /api/workflows/{id}/estimate', { path })
    for (const method of ['GET', 'PATCH', 'PUT']) await run.send(`${method} /api/workflows/{id}`, { path })
    await run.send('GET /api/workflows/{id}/versions', { path })
    await run.send('POST /api/workflows/{id}/duplicate', { path })
    const begun = await run.send<{ execution: { id: string } }>('POST /api/workflows/{id}/execute', { path })
    const of = { path: idOf(begun.execution) }
    await run.stream('GET /api/workflow-executions/{id}/events', of)
    await run.send('GET /api/workflow-executions/{id}', of)
    await run.send('GET /api/workflow-executions/{id}', { ...of, query: { include: 'dag' } })
    await run.send('GET /api/workflow-executions')
    await run.send('GET /api/workflows/{id}/executions', { path })
    await run.send('GET /api/workflow-executions/{id}/compare', { ...of, query: { with: begun.execution.id } })
    await run.send('GET /api/workflow-executions/{id}/nodes', of)
    await run.send('GET /api/workflow-executions/{id}/nodes/{node}', { path: { ...of.path, node: 'write' } })
    await run.send('GET /api/workflow-executions/{id}/nodes/{node}/items', { path: { ...of.path, node: 'write' } })
    await run.stream('GET /api/events', { query: { after: 'evt_0' } }, event =>
      JSON.stringify(event).includes('"type":"workflow_execution.completed"'),
    )
    const again = await run.send<{ execution: { id: string } }>('POST /api/workflow-executions/{id}/retry', {
      ...of,
      body: { from: 'start' },
    })
    await run.send('POST /api/workflow-executions/{id}/cancel', { path: idOf(again.execution) })
    await run.send('POST /api/workflows/run')
    await run.send('DELETE /api/workflow-executions/{id}', of)
    await run.send('DELETE /api/workflows/{id}', { path, query: { force: 'true' } })
  })

  test('nodes that wait', async () => {
    const nodes = {
      ask: { task: 'wait/approval', inputs: { title: 'Publish?' } },
      paid: { task: 'wait/event', inputs: {} },
    }
    const begun = await run.send<{ execution: { id: string } }>('POST /api/workflows/run', { body: { dag: { nodes } } })
    const path = idOf(begun.execution)
    const waiting = async () =>
      (await run.send<{ execution: { progress: { waiting: number } } }>('GET /api/workflow-executions/{id}', { path }))
        .execution.progress.waiting
    await expect.poll(waiting).toBe(2)
    const { approvals } = await run.send<{ approvals: { id: string }[] }>('GET /api/approvals')
    await run.send('GET /api/approvals/{id}', { path: idOf(approvals[0]!) })
    const paid = { path: { ...path, node: 'paid' } }
    const { node } = await run.send<{ node: { answer_url: string } }>(
      'GET /api/workflow-executions/{id}/nodes/{node}',
      paid,
    )
    const token = node.answer_url.split('/').at(-1)!
    await run.send('POST /events/{token}', { path: { token }, body: { paid: true } })
    await run.send('POST /api/workflow-executions/{id}/nodes/{node}/resolve', { path: { ...path, node: 'ask' } })
  })

  testWithFfmpeg('videos', async () => {
    const body = { prompt: 'A cat', width: 64, height: 64, num_frames: 4, fps: 8 }
    const headers = { prefer: 'wait=60' }
    await run.send('POST /slug/{slug}', { path: { slug: 'demo/text-to-video' }, body, headers, status: 200 })
    const { items } = await run.send<{ items: { id: string }[] }>('GET /api/library')
    const path = idOf(items[0]!)
    await run.send('GET /api/library/{id}', { path })
    await run.send('DELETE /api/library/{id}', { path })
    const video = { path: idOf(await run.send<{ id: string }>('POST /std/v1/videos')) }
    const state = async () => (await run.send<{ status: string }>('GET /std/v1/videos/{id}', video)).status
    await expect.poll(state).toBe('completed')
    await run.send('GET /std/v1/videos')
    await run.send('GET /std/v1/videos/{id}/content', video)
    await run.send('DELETE /std/v1/videos/{id}', video)
  })

  test('conversations', async () => {
    const body = { call_storage: 'content' }
    await run.send('PATCH /api/organizations/{organization}', { path: { organization }, body })
    const path = idOf(await run.send<{ id: string }>('POST /api/conversations'))
    await run.send('GET /api/conversations')
    for (const method of ['GET', 'PATCH']) await run.send(`${method} /api/conversations/{id}`, { path })
    await run.send('GET /api/conversations/{id}/export', { path })
    await run.send('PATCH /api/conversation-folders')
    const links = '/api/conversations/{id}/links'
    const { id: link, url } = await run.send<{ id: string; url: string }>(`POST ${links}`, { path })
    await run.send(`GET ${links}`, { path })
    const token = new URL(url).pathname.split('/')[2]!
    await run.send('GET /shared/{token}/conversation', { path: { token }, token: null })
    await run.send(`DELETE ${links}/{link}`, { path: { ...path, link } })
    await run.send('DELETE /api/conversations/{id}', { path })
  })

  test('webhooks', async () => {
    const ofOrganization = '/api/organizations/{organization}/webhook-secret'
    await run.send(`GET ${ofOrganization}`, { path: { organization } })
    await run.send(`POST ${ofOrganization}/rotate`, { path: { organization } })
    const all = '/api/webhooks'
    const { webhook } = await run.send<{ webhook: { id: string } }>(`POST ${all}`)
    const path = idOf(webhook)
    await run.send(`GET ${all}`)
    await run.send(`GET ${all}/{id}`, { path })
    await run.send(`POST ${all}/{id}/rotate`, { path })
    // No message leaves this machine: the host does not exist.
    await run.send(`PATCH ${all}/{id}`, { path, body: { url: 'https://hooks.invalid/', event_types: ['*'] } })
    await run.send(`POST ${all}/{id}/test`, { path })
    await run.send('POST /api/jobs')
    const list = `GET ${all}/{id}/deliveries`
    let deliveries: { id: string }[] = []
    await expect
      .poll(
        async () =>
          ({ deliveries } = await run.send<{ deliveries: { id: string }[] }>(list, { path })).deliveries.length,
      )
      .toBeGreaterThan(0)
    const delivery = deliveries[0]!.id
    await run.send('GET /api/webhook-deliveries')
    await run.send(`POST ${all}/{id}/deliveries/{delivery}/redeliver`, { path: { ...path, delivery } })
    await run.send('POST /api/webhook-deliveries/{delivery}/redeliver', { path: { delivery } })
    await run.send(`DELETE ${all}/{id}`, { path })

    const std = '/std/v1/webhook_endpoints'
    await run.send('GET /std/v1/webhook_event_types')
    const endpoint = idOf(await run.send<{ id: string }>(`POST ${std}`))
    await run.send(`GET ${std}`)
    await run.send(`GET ${std}/{id}`, { path: endpoint })
    await run.send(`POST ${std}/{id}`, { path: endpoint, body: { url: 'https://hooks.invalid/' } })
    await run.send(`POST ${std}/{id}/rotate_secret`, { path: endpoint })
    await run.send(`POST ${std}/{id}/test`, { path: endpoint })
    await run.send(`DELETE ${std}/{id}`, { path: endpoint })
    await run.send('GET /.well-known/jwks.json', { token: null })
  })

  test('tokens', async () => {
    await run.send('GET /api/me')
    const made = async () => {
      const { token } = await run.send<{ token: { id: string } }>(`POST ${tokens}`, { path: { organization } })
      return { organization, id: token.id }
    }
    const path = await made()
    await run.send(`GET ${tokens}`, { path })
    await run.send('GET /api/organizations/{organization}/usage', {
      path: { organization },
      query: { group_by: 'model_id', bucket_width: 'month' },
    })
    await run.send(`GET ${tokens}/{id}`, { path })
    await run.send(`PATCH ${tokens}/{id}`, { path })
    await run.send(`POST ${tokens}/{id}/rotate`, { path: await made() })
    await run.send(`POST ${tokens}/{id}/revoke`, { path })
    await run.send(`DELETE ${tokens}/{id}`, { path: await made() })
  })

  test('organizations and members', async () => {
    const base = '/api/organizations'
    const created = await run.send<{ organization: { id: string } }>(`POST ${base}`)
    const path = { organization: created.organization.id }
    await run.send(`GET ${base}`)
    await run.send(`GET ${base}/{organization}`, { path })
    await run.send(`PATCH ${base}/{organization}`, { path })
    await run.send(`PATCH ${base}/{organization}/limits`, { path })
    await run.send(`GET ${base}/{organization}/limits`, { path })
    const members = `${base}/{organization}/members`
    const { user } = await run.send<{ user: { id: string } }>(`POST ${members}`, { path })
    const one = { ...path, user: user.id }
    await run.send(`GET ${members}`, { path })
    await run.send(`GET ${members}/{user}`, { path: one })
    await run.send(`PATCH ${members}/{user}`, { path: one })
    await run.send(`DELETE ${members}/{user}`, { path: one })
    await run.send(`POST ${base}/{organization}/suspend`, { path })
    await run.send(`POST ${base}/{organization}/resume`, { path })
    await run.send(`GET ${base}/{organization}/audit`, { path })
    await run.send(`DELETE ${base}/{organization}`, { path })
  })

  test('the server', async () => {
    for (const name of ['/livez', '/readyz', '/metrics']) await run.send(`GET ${name}`, { token: null })
    await run.send('GET /infer.schema.json', { token: null })
    await run.send('GET /openapi.json', { token: null })
    run.answers.delete('getInferSchemaJson')
    run.answers.delete('getOpenapiJson')
    await run.send('GET /api/system/status')
    for (const what of ['history', 'config', 'backups', 'licenses']) await run.send(`GET /api/system/${what}`)
    await run.send('GET /api/system/logs', { query: { lines: '2' } })
    await run.stream('GET /api/system/logs', { query: { follow: 'true' } }, () => true)
  })
})

/** The parameters of a signed address. */
function addressOf(url: string): { path: { id: string; name: string }; query: Record<string, string> } {
  const { pathname, searchParams } = new URL(url)
  const [, , id, name] = pathname.split('/') as [string, string, string, string]
  return { path: { id, name }, query: Object.fromEntries(searchParams) }
}

test('every operation was sent, or is listed with a reason', () => {
  const names = operationsOf(api).map(({ method, path }) => `${method.toUpperCase()} ${path}`)
  const left = names.filter(name => !run.sent.has(name) && !name.includes('/api/library/'))
  expect(left.toSorted()).toEqual(Object.keys(unsent).toSorted())
})

test('the examples of answers in the reference have the current form', () => {
  const before = storedExamples()
  const replacements = [
    [app.url, 'http://127.0.0.1:8787'],
    [app.dataDir, '/var/lib/infer'],
    [process.cwd(), '/opt/infer'],
    [process.execPath, '/opt/infer/node'],
  ] as const
  const now = Object.fromEntries(
    [...run.answers].map(([id, answer]) => {
      const example = exampleOf(answer, replacements)
      const same = JSON.stringify(formOf(before[id])) === JSON.stringify(formOf(example))
      return [id, same ? before[id] : example]
    }),
  )
  const all = Object.entries({ ...before, ...now }).toSorted(([a], [b]) => (a < b ? -1 : 1))
  if (process.env.UPDATE_GOLDEN) writeFileSync(examplesPath, `${JSON.stringify(Object.fromEntries(all), null, 2)}\n`)
  const ids = new Set(operationsOf(api).map(({ operation }) => operation.operationId))
  const after = storedExamples()
  expect(Object.keys(after).filter(id => !ids.has(id))).toEqual([])
  expect([...run.answers.keys()].filter(id => !(id in after))).toEqual([])
})

test('the stored examples have the documented shape', () => {
  const compile = compiler(api, { close: true })
  const stored = storedExamples()
  for (const { operation } of operationsOf(api)) {
    const example = stored[operation.operationId]
    if (example === undefined) continue
    const schemas = Object.entries(operation.responses)
      .filter(([status]) => status.startsWith('2'))
      .map(([, { content }]) => content?.['application/json']?.schema)
      .filter(schema => schema !== undefined)
    expect([operation.operationId, schemas.some(schema => compile(schema)(example))]).toEqual([
      operation.operationId,
      true,
    ])
  }
})
