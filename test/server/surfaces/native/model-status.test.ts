import { expect, test } from 'vitest'
import { fakeModel, startApp } from '../../../_app.ts'
import { ask, type Json, painters, submitted, until } from '../slug/_painter.ts'

test('shows the routes of each task, what it accepts, and how many requests wait', async () => {
  await using app = await startApp({ models: [...painters, fakeModel('fake')] })
  const statuses = async () =>
    Object.fromEntries(
      ((await ask(app, '/api/model-status')).body.models as Json[]).map(one => [one.model_id as string, one]),
    )
  const before = await statuses()
  expect(before.painter).toMatchObject({
    slug: 'fake/paint/text-to-image',
    slugs: {
      'slug/text-to-image': 'fake/paint/text-to-image',
      'slug/image-to-video': 'fake/paint/image-to-video',
    },
    queue_depth: 0,
    eta_seconds: null,
  })
  expect(before.solo).toMatchObject({ slug: 'fake/solo', slugs: { 'slug/text-to-image': 'fake/solo' } })
  expect(before.solo.input_schema).toMatchObject({
    type: 'object',
    required: ['prompt'],
    properties: { num_images: { minimum: 1, maximum: 4 }, resolution: { enum: ['480p', '720p'] } },
  })
  const ofSlugs = (before.painter.tasks as string[]).filter(task => task.startsWith('slug/'))
  expect(Object.keys(before.painter.input_schemas as object)).toEqual(ofSlugs)
  expect(before.painter.tasks).toEqual([...ofSlugs, 'std/image-generation', 'std/image-edit'])
  expect(before.painter.input_schemas['slug/image-to-video'].required).toEqual(['prompt', 'image_url'])
  expect(before.fake).toMatchObject({ slug: null, slugs: {}, input_schema: null, input_schemas: {} })
  // Every listed slug answers requests.
  for (const slug of Object.values(before.painter.slugs as Record<string, string>))
    expect((await ask(app, `/slug/${slug}`, { body: {} })).body.error.code).toBe('missing_required_parameter')

  const quick = await submitted(app, 'fake/solo')
  await until(app, quick, 'COMPLETED')
  const running = await submitted(app, 'fake/solo', { prompt: 'mode:slow,ms=60000' })
  await until(app, running, 'IN_PROGRESS')
  const waiting = [
    await submitted(app, 'fake/solo'),
    await submitted(app, 'fake/solo'),
    await submitted(app, 'fake/solo'),
  ]
  const busy = (await statuses()).solo
  expect(busy.queue_depth).toBe(3)
  expect(busy.eta_seconds).toBeGreaterThan(0)
  for (const id of [running, ...waiting]) await ask(app, `/slug/requests/${id}/cancel`, { method: 'POST' })
  await expect.poll(async () => (await statuses()).solo.queue_depth as number).toBe(0)
})
