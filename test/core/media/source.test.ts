import { expect, test } from 'vitest'
import { bytesOfBase64 } from '../../../core/data-url.ts'
import { noBase64, readSource } from '../../../core/media/source.ts'

const id = 'file-01K2ZZZZZZ7QK2M9XDAAAAAAAA'
const link = `http://127.0.0.1:8787/files/${id}/a.png?exp=1&sig=x`

test.each<[value: string, origins: string[], source: object]>([
  ['https://example.com/a.png', ['http://127.0.0.1:8787'], { from: 'http', url: 'https://example.com/a.png' }],
  [link, ['http://127.0.0.1:8787'], { from: 'link', id, exp: '1', sig: 'x' }],
  [link, ['', 'http://127.0.0.1:8787'], { from: 'link', id }],
  // A workflow node runs without a request, so it has no origin.
  [link, ['', ''], { from: 'http', url: link }],
])('%s with the origins %j', (value, origins, source) => {
  expect(readSource(value, 'image_url', origins)).toMatchObject(source)
})

test.each([
  ['', "'it' is a data: URL without content: the file is empty."],
  ['\r\n', "'it' is a data: URL without content: the file is empty."],
  ['%%%%', "'it' is a data: URL whose content is not base64."],
])('the content %j is refused', (text, message) => {
  expect([bytesOfBase64(text), noBase64(text, 'it').message]).toEqual([undefined, message])
})
