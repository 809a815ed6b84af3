import { expect, test } from 'vitest'
import { Failure } from '../../../../core/failure.ts'
import { filled, withImages } from '../../../../core/tasks/chat/images.ts'
import { shortener } from '../../../../core/tasks/chat/truncation.ts'
import type { ImageReference } from '../../../../core/tasks/engine-request.ts'
import { prepareInputs } from '../../../../core/tasks/preparation.ts'
import { catalogOf } from '../_catalog.ts'

const part = (url: string) => ({ type: 'image_url', image_url: { url } })
const prepared = (...urls: string[]) =>
  prepareInputs(
    'std/chat-completion',
    { model: 'm', messages: [{ role: 'user', content: [{ type: 'text', text: 'http://a/' }, ...urls.map(part)] }] },
    catalogOf({ features: new Set(['images']) }),
  )
const cpu = { insertImages: filled }
const textOf = (body: string | Uint8Array) => (typeof body === 'string' ? body : Buffer.from(body).toString('utf8'))
/** Stands for the check: names the image by what it got. */
const checked = async ({ value }: ImageReference) =>
  Buffer.from(`data:checked,${typeof value === 'string' ? btoa(value) : Buffer.from(value).toString('hex')}`)

test('the engine’s request contains no address and no image as it was sent', async () => {
  const before = prepared('http://a/1.png', 'data:image/png;base64,AAEC', 'http://a/2.png')
  expect(before.images?.map(({ param, value }) => [param, value])).toEqual([
    ['messages[0].content[1].image_url.url', 'http://a/1.png'],
    ['messages[0].content[2].image_url.url', Uint8Array.of(0, 1, 2)],
    ['messages[0].content[3].image_url.url', 'http://a/2.png'],
  ])
  const { bodies } = await withImages(before, checked, cpu)
  const { messages } = JSON.parse(textOf(bodies[0]!)) as { messages: { content: object[] }[] }
  expect(messages[0]!.content).toEqual([
    { type: 'text', text: 'http://a/' },
    part(`data:checked,${btoa('http://a/1.png')}`),
    part('data:checked,000102'),
    part(`data:checked,${btoa('http://a/2.png')}`),
  ])
})

test('a request without images is passed on unchanged', async () => {
  const before = prepared()
  expect(await withImages(before, () => Promise.reject(new Error('nothing to fetch')), cpu)).toBe(before)
})

test.each(['data:image/png,hello', 'data:image/png;base64,', 'data:image/png;base64,not base64!'])(
  '%o is refused with its field',
  url => {
    const param = 'messages[0].content[1].image_url.url'
    expect(() => prepared(url)).toThrow(expect.objectContaining({ code: 'invalid_value', param }))
  },
)

test('at most 16 images are fetched; those in the request are not counted', () => {
  const inside = Array.from({ length: 20 }, () => 'data:image/png;base64,AAEC')
  expect(prepared(...inside).images).toHaveLength(20)
  expect(() => prepared(...Array.from({ length: 17 }, () => 'http://a/1.png'))).toThrow(/More than 16 images/)
})

test('four images of a request are checked at once, and none after the first failure', async () => {
  const before = prepared(...Array.from({ length: 12 }, () => 'data:image/png;base64,AAEC'))
  let [running, most, begun] = [0, 0, 0]
  const check = async () => {
    most = Math.max(most, ++running)
    const turn = ++begun
    await new Promise(setImmediate)
    running--
    if (turn === 6) throw new Failure('invalid_image', 'The image is a PDF.')
    return 'data:'
  }
  await expect(withImages(before, check, cpu)).rejects.toMatchObject({ code: 'invalid_image' })
  await new Promise(setImmediate)
  expect(most).toBe(4)
  expect(begun).toBeLessThan(12)
})

test('images that together are too large for one request are refused', async () => {
  const before = prepared('http://a/1.png', 'http://a/2.png')
  const large = async () => new Uint8Array(65 << 20)
  const insertImages = () => ({ bodies: [], droppable: undefined })
  await expect(withImages(before, large, { insertImages })).rejects.toMatchObject({ code: 'payload_too_large' })
})

test('messages around an image can still be left out, whatever characters are before it', async () => {
  const turn = (content: unknown) => [
    { role: 'user', content },
    { role: 'assistant', content: 'yes' },
  ]
  const messages = [
    ...turn('größer 💡'),
    ...turn([part('data:image/png;base64,AAEC'), part('data:image/png;base64,AAED')]),
    { role: 'user', content: 'last' },
  ]
  const before = prepareInputs(
    'std/chat-completion',
    { model: 'm', messages, truncation: 'auto', max_tokens: 1 },
    catalogOf({ features: new Set(['images']) }),
  )
  const { bodies, droppable } = await withImages(before, checked, cpu)
  const shorten = shortener(bodies[0]!, droppable!)
  const facts = { prompt_tokens: 2_000, context_length: 2_000 }
  const tooLong = new Failure('context_length_exceeded', 'too long', { facts })
  expect(JSON.parse(shorten(tooLong)!)).toMatchObject({
    messages: [
      { content: [part('data:checked,000102'), part('data:checked,000103')] },
      { content: 'yes' },
      { content: 'last' },
    ],
  })
  expect(JSON.parse(shorten(tooLong)!)).toMatchObject({ messages: [{ content: 'last' }] })
})

test('thousands of images are put into megabytes of text in linear time', () => {
  const markOf = (at: number) => `image:${at.toString(16).padStart(32, '0')}`
  const replacements = Array.from({ length: 10_000 }, (_, at): [string, string] => [markOf(at), `${at}`])
  const text = 'image: '.repeat(500_000)
  const body = JSON.stringify([text, ...replacements.map(([mark]) => mark)])
  const started = performance.now()
  const { bodies } = filled({ bodies: [body], droppable: undefined, replacements: replacements.toReversed() })
  expect(performance.now() - started).toBeLessThan(1_000)
  expect(textOf(bodies[0]!) === JSON.stringify([text, ...replacements.map(([, number]) => number)])).toBe(true)
})
