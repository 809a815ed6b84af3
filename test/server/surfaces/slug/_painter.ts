import { expect, vi } from 'vitest'
import { generationTasks } from '../../../../core/schemas/task.ts'
import type { TestApp } from '../../../_app.ts'
import { fakeModel } from '../../../_app.ts'

/** The smallest size, so that the fake engine is quick. */
export const small = { prompt: 'a cat', image_size: { width: 64, height: 64 }, seed: 7 }
const short = { num_frames: 9, fps: 8 }

export const painters = [
  fakeModel('painter', [], {
    slug: 'fake/paint',
    tasks: [...generationTasks],
  }),
  fakeModel('solo', [], {
    slug: 'fake/solo',
    tasks: ['slug/text-to-image'],
    concurrency: 1,
    dispatch_wait_ms: '400ms',
  }),
  fakeModel('cold', ['--ready-after', '60000'], {
    slug: 'fake/cold',
    tasks: ['slug/text-to-image'],
    dispatch_wait_ms: '300ms',
  }),
  fakeModel('off', [], { slug: 'fake/off', tasks: ['slug/text-to-image'], enabled: false }),
]

// oxlint-disable-next-line no-explicit-any
export type Json = any

export interface Answer {
  status: number
  headers: Headers
  text: string
  body: Json
}

export async function ask(app: TestApp, path: string, options?: Parameters<TestApp['fetch']>[1]): Promise<Answer> {
  const response = await app.fetch(path, options)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: JSON.parse(text) }
}

/** Submits, and resolves with the id of the request. */
export async function submitted(app: TestApp, slug: string, body: object = {}, headers = {}): Promise<string> {
  const answer = await ask(app, `/slug/${slug}`, {
    body: { ...small, ...(slug.endsWith('-to-video') ? short : {}), ...body },
    headers,
  })
  expect([answer.status, answer.text]).toEqual([202, expect.any(String)])
  return answer.body.request_id as string
}

export const statusOf = async (app: TestApp, id: string, query = ''): Promise<Json> =>
  (await ask(app, `/slug/requests/${id}/status${query}`)).body

/** Resolves with the status once the request has it. */
export async function until(app: TestApp, id: string, status: string): Promise<Json> {
  const there = async () => expect((await statusOf(app, id)).status).toBe(status)
  await vi.waitFor(there, { timeout: 40_000, interval: 50 })
  return statusOf(app, id, '?logs=1')
}
