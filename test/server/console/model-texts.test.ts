import { expect, test } from 'vitest'
import { licenses } from '../../../bin/works.ts'
import type { Task } from '../../../core/schemas/task.ts'
import { taskRecords } from '../../../core/tasks/registry.ts'
import { modelHref } from '../../../server/console/app/components/addresses.ts'
import { priceTexts, settingsOf, shellCommand } from '../../../server/console/app/pages/models/model-texts.ts'
import { testRequest } from '../../../server/console/app/pages/models/test-request.ts'
import { worksIn } from '../../../server/console/app/pages/system/works.ts'

const nothing = {
  currency: 'EUR',
  input_per_million_tokens: 0,
  cached_input_per_million_tokens: 0,
  output_per_million_tokens: 0,
  per_image: 0,
  image_prices: [],
  per_video_second: 0,
  per_audio_second: 0,
  per_thousand_characters: 0,
  per_thousand_documents: 0,
  per_gpu_second: 0,
}

test('prices are named with their unit, and only those that are not 0', () => {
  expect(priceTexts(null)).toEqual([])
  expect(priceTexts({ ...nothing, input_per_million_tokens: 0.5, per_image: 0.002 })).toEqual([
    '0.50 EUR for a million input tokens',
    '0.002 EUR for an image',
  ])
})

test('settings without a value are left out, groups become paths', () => {
  expect(
    settingsOf({ id: 'm', a: null, list: [], more: [1, 'b'], sampling: { temperature: 0.5, top: undefined } }),
  ).toEqual([
    { key: 'id', value: 'm' },
    { key: 'more', value: '1, b' },
    { key: 'sampling.temperature', value: '0.5' },
  ])
})

test('a command can be pasted into a shell', () => {
  expect(shellCommand(['/bin/x', '--a=b', 'two words', "it's", '$HOME'])).toBe(
    "/bin/x --a=b 'two words' 'it'\\''s' '$HOME'",
  )
})

test('a model is tested by the first of its tasks that has a short request', () => {
  const known = taskRecords.map(({ id, category, path = null, sample = null }) => ({
    id,
    category,
    path,
    sample,
    media_fields: [],
  }))
  const requestFor = (...tasks: Task[]) => testRequest({ model_id: 'm', tasks }, known as never)
  expect(requestFor('slug/text-to-image', 'std/rerank', 'std/score')).toMatchObject({
    path: '/std/v1/rerank',
    body: { model: 'm', query: 'cat' },
  })
  expect(requestFor('slug/image-to-video', 'slug/text-to-image')).toMatchObject({
    task: 'slug/text-to-image',
    inputs: { width: 512 },
  })
  expect(requestFor('slug/inpainting')).toBeUndefined()
})

test('the address of a model keeps the slashes of its id and nothing else', () => {
  expect(modelHref('team/a b?#', '?part=log')).toBe('/models/details/team/a%20b%3F%23?part=log')
})

test('the page reads the licences as the build writes them', () => {
  const work = (name: string, text: string | undefined) => ({
    name,
    version: '1.0',
    license: 'MIT (X11)',
    author: 'me',
    text,
  })
  const works = [work('one', 'Text\nof one'), work('@scope/two', undefined)]
  expect(worksIn(licenses(works as never))).toEqual([
    { name: 'one 1.0', license: 'MIT (X11)', text: 'Text\nof one' },
    { name: '@scope/two 1.0', license: 'MIT (X11)', text: expect.stringContaining('By me') as string },
  ])
})
