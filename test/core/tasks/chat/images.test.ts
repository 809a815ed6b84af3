import { expect, test } from 'vitest'
import { withImages } from '../../../../core/tasks/chat/images.ts'
import { prepareInputs } from '../../../../core/tasks/preparation.ts'
import { catalogOf } from '../_catalog.ts'

const part = (url: string) => ({ type: 'image_url', image_url: { url } })
const prepared = (...urls: string[]) =>
  prepareInputs(
    'std/chat-completion',
    { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'http://a/' }, ...urls.map(part)] }] },
    catalogOf({ features: new Set(['images']) }),
  )

test('the engine’s request contains no address', async () => {
  const before = prepared('http://a/1.png', 'data:image/png;base64,AAAA', 'http://a/2.png')
  expect(before.images?.map(({ param, value }) => [param, value])).toEqual([
    ['messages[0].content[1].image_url.url', 'http://a/1.png'],
    ['messages[0].content[3].image_url.url', 'http://a/2.png'],
  ])
  const { bodies } = await withImages(before, async ({ value }) => `data:image/png;base64,${btoa(value)}`)
  const { messages } = JSON.parse(bodies[0] as string) as { messages: { content: object[] }[] }
  expect(messages[0]!.content).toEqual([
    { type: 'text', text: 'http://a/' },
    part(`data:image/png;base64,${btoa('http://a/1.png')}`),
    part('data:image/png;base64,AAAA'),
    part(`data:image/png;base64,${btoa('http://a/2.png')}`),
  ])
})

test('a request without images is passed on unchanged', async () => {
  const before = prepared('data:image/png;base64,AAAA')
  expect(await withImages(before, () => Promise.reject(new Error('nothing to fetch')))).toBe(before)
})
