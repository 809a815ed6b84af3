import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect } from 'vitest'
import { newId } from '../../../../core/ids.ts'
import { fakeModel, startApp, type TestApp, workspacesIn } from '../../../_app.ts'
import { testWithFfmpeg as test } from '../../../_ffmpeg.ts'
import { makeOrganization } from '../../_organization.ts'

interface Item {
  id: string
  kind: string
  file: { url: string; content_type: string }
  video: { url: string; content_type: string; file_name: string; file_size: number } | null
  thumbnail_url: string | null
  job_id: string
  created_at: number
  [name: string]: unknown
}
interface Page {
  items: Item[]
  has_more: boolean
  next_cursor: string | null
}

let app: TestApp
/** Oldest first. */
const made: { prompt: string; model: string; url: string; jobId: string }[] = []

beforeAll(async () => {
  const tasks = ['slug/text-to-video', 'slug/text-to-image']
  app = await startApp({ models: ['one', 'two'].map(id => fakeModel(id, [], { tasks, concurrency: 1 })) })
  for (const [model, prompt] of [
    ['one', 'A Cat under the SEA'],
    ['two', 'a dog by the sea'],
    ['one', 'Straße, 100% café_au_lait'],
  ] as const) {
    const body = { prompt, width: 96, height: 64, num_frames: 8, fps: 4, seed: 9, sync_mode: true }
    const response = await app.fetch(`/slug/${model}/text-to-video`, { body })
    const result = (await response.json()) as { request_id: string; video: { url: string } }
    expect(response.status, JSON.stringify(result)).toBe(200)
    made.push({ prompt, model, url: result.video.url, jobId: result.request_id.replace('q_', 'job_') })
  }
  const picture = { prompt: 'a picture of the sea', image_size: { width: 64, height: 64 }, sync_mode: true }
  expect((await app.fetch('/slug/one/text-to-image', { body: picture })).status).toBe(200)
})
afterAll(() => app[Symbol.asyncDispose]())

const list = async (query = '', token = app.secret) =>
  (await (await app.fetch(`/api/library${query}`, { token })).json()) as Page
const videos = (query: string) => list(`${query || '?'}&kind=video`)
const prompts = async (query: string) => (await videos(query)).items.map(({ prompt }) => prompt)

test('every generated video is listed, newest first, with its facts', async () => {
  const { items, has_more, next_cursor } = await videos('')
  expect(items.map(({ prompt }) => prompt)).toEqual(made.map(({ prompt }) => prompt).toReversed())
  expect([has_more, next_cursor]).toEqual([false, null])
  const [newest] = items
  expect(newest).toEqual({
    id: expect.stringMatching(/^file-/) as string,
    object: 'library_item',
    kind: 'video',
    file: {
      url: expect.stringMatching(`^${app.url}/files/${newest!.id}/.*[?]exp=`) as string,
      content_type: 'video/mp4',
      file_name: expect.stringMatching(/[.]mp4$/) as string,
      file_size: expect.any(Number) as number,
    },
    video: newest!.file,
    thumbnail_url: expect.stringContaining(`${app.url}/files/file-`) as string,
    prompt: 'Straße, 100% café_au_lait',
    seed: 9,
    model_id: 'one',
    task: 'slug/text-to-video',
    job_id: made[2]!.jobId,
    width: 96,
    height: 64,
    duration_seconds: 2,
    fps: 4,
    num_frames: 8,
    created_at: expect.any(Number) as number,
    expires_at: expect.any(Number) as number,
  })
  const video = await fetch(newest!.file.url)
  expect([video.status, (await video.arrayBuffer()).byteLength]).toEqual([200, newest!.video!.file_size])
  const thumbnail = await fetch(newest!.thumbnail_url!)
  expect([thumbnail.status, thumbnail.headers.get('content-type')]).toEqual([200, 'image/webp'])
  expect(await (await app.fetch(`/api/library/${newest!.id}`)).json()).toEqual(newest)
})

test('images are listed with a thumbnail, and without the figures of videos', async () => {
  const [newest, ...more] = (await list('?kind=image')).items
  expect(more).toEqual([])
  expect(newest).toMatchObject({ kind: 'image', video: null, width: 64, height: 64, fps: null, num_frames: null })
  expect([newest!.prompt, newest!.task]).toEqual(['a picture of the sea', 'slug/text-to-image'])
  expect((await fetch(newest!.file.url)).headers.get('content-type')).toBe('image/png')
  expect((await fetch(newest!.thumbnail_url!)).headers.get('content-type')).toBe('image/webp')
  expect((await list()).items[0]).toMatchObject({ id: newest!.id })
  expect((await list('?kind=audio')).items).toEqual([])
})

test.each([
  ['?q=sea', ['a dog by the sea', 'A Cat under the SEA']],
  ['?q=CAT%20sea', ['A Cat under the SEA']],
  ['?q=100%25', ['Straße, 100% café_au_lait']],
  ['?q=café_au', ['Straße, 100% café_au_lait']],
  ['?q=%25', ['Straße, 100% café_au_lait']],
  ['?q=dog%20cat', []],
  ['?q=%20%20&model_id=two', ['a dog by the sea']],
  ['?model_id=three', []],
  ['?created_after=9999999999', []],
  ['?created_before=1', []],
  ["?q='%20OR%201=1%20--", []],
])('a search for %s finds %j', async (query, found) => {
  expect(await prompts(query)).toEqual(found)
})

test('times are Unix seconds', async () => {
  const { created_at: at } = (await videos('')).items[1]!
  expect(await prompts(`?created_after=${at - 5}&created_before=${at + 5}`)).toContain('a dog by the sea')
})

test('page by page the list is the same', async () => {
  const seen: string[] = []
  for (let after: string | null = ''; after !== null; ) {
    const { items, next_cursor, has_more }: Page = await list(`?limit=1${after && `&after=${after}`}`)
    expect(has_more).toBe(next_cursor !== null)
    seen.push(...items.map(({ id }) => id))
    after = next_cursor
  }
  expect(seen).toEqual((await list()).items.map(({ id }) => id))
})

test.each([
  ['?limit=0', 'limit'],
  ['?kind=text', 'kind'],
  ['?limit=101', 'limit'],
  ['?after=x', 'after'],
  ['?after=../../etc', 'after'],
  ['?created_after=yesterday', 'created_after'],
])('%s is refused', async (query, param) => {
  const response = await app.fetch(`/api/library${query}`)
  expect([response.status, ((await response.json()) as { error: { param: string } }).error.param]).toEqual([400, param])
})

test('another organization has an empty list, and entries answer as if they did not exist', async () => {
  const { secret } = await makeOrganization(app)
  const [item] = (await list()).items
  expect((await list('', secret)).items).toEqual([])
  for (const method of ['GET', 'DELETE']) {
    const [foreign, absent] = await Promise.all(
      [item!.id, newId('file')].map(async id => {
        const response = await app.fetch(`/api/library/${id}`, { method, token: secret })
        return [response.status, (await response.text()).replaceAll(id, 'ID').replace(/req_\w+/, '')]
      }),
    )
    expect(foreign).toEqual(absent)
    expect(foreign![0]).toBe(404)
  }
  // A cursor of another organization reveals nothing.
  expect((await list(`?after=${item!.id}`, secret)).items).toEqual([])
})

test('a removed video is gone from the list, from its addresses and from the disk; its job is kept', async () => {
  const [item] = (await videos('?q=cat')).items
  const stored = () =>
    readdirSync(join(app.dataDir, 'files', app.organizationId)).filter(name => name.startsWith(item!.id))
  expect(stored()).toHaveLength(1)
  const remove = () => app.fetch(`/api/library/${item!.id}`, { method: 'DELETE' })
  expect(await (await remove()).json()).toEqual({ id: item!.id, object: 'library_item', deleted: true })
  expect((await remove()).status).toBe(404)
  expect((await app.fetch(`/api/library/${item!.id}`)).status).toBe(404)
  expect(await prompts('')).toHaveLength(2)
  for (const url of [item!.file.url, item!.thumbnail_url!, made[0]!.url]) {
    const response = await fetch(url)
    expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
      410,
      'output_expired',
    ])
  }
  await expect.poll(stored).toEqual([])
  expect(((await (await app.fetch(`/api/jobs/${item!.job_id}`)).json()) as { status: string }).status).toBe('completed')
  expect((await app.fetch(`/slug/requests/${item!.job_id.replace('job_', 'q_')}`)).status).toBe(410)
  expect(existsSync(join(app.dataDir, 'work'))).toBe(true)
  expect(workspacesIn(app.dataDir)).toEqual([])
})
