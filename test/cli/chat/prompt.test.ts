import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { imageUrl, promptContent, promptOf } from '../../../cli/chat/prompt.ts'
import { temporaryFolder } from '../_infer.ts'

test.each<[words: string[], piped: string, prompt: string]>([
  [['Why', 'is', 'it?'], '', 'Why is it?'],
  [[], 'piped text', 'piped text'],
  [['summarise'], 'a\nb', 'summarise\n\na\nb'],
  [['  '], '\n', ''],
  [[], '', ''],
])('words %j and piped %j are the prompt %j', (words, piped, prompt) => expect(promptOf(words, piped)).toBe(prompt))

const image = (name: string, head: string | Buffer) => {
  const path = join(temporaryFolder(), name)
  writeFileSync(path, head)
  return path
}
const heads: [type: string, head: Buffer][] = [
  ['image/png', Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])],
  ['image/jpeg', Buffer.from([0xff, 0xd8, 0xff, 0xe0])],
  ['image/gif', Buffer.from('GIF89a')],
  ['image/webp', Buffer.from('RIFF\0\0\0\0WEBP')],
]
test.each(heads)('a file becomes a data URL of %s by its first bytes, whatever its name', (type, head) => {
  expect(imageUrl(image('photo.txt', head))).toBe(`data:${type};base64,${head.toString('base64')}`)
})

test('a URL stays a URL', () => {
  expect(imageUrl('https://host/cat.png')).toBe('https://host/cat.png')
})

test('with images the question has parts; without images it is text', () => {
  const url = 'data:image/png;base64,AA=='
  expect(promptContent('What?', [])).toBe('What?')
  expect(promptContent('What?', [url])).toEqual([
    { type: 'text', text: 'What?' },
    { type: 'image_url', image_url: { url } },
  ])
  expect(promptContent('', [url, url])).toHaveLength(2)
})

test.each([
  ['a file that is not an image', () => image('cat.png', 'not an image'), 'is not an image'],
  [
    'a file that is too large',
    () => image('cat.png', Buffer.concat([heads[0]![1], Buffer.alloc(21 << 20)])),
    'larger than 20 MiB',
  ],
  ['a missing file', () => '/nowhere/cat.png', 'cannot be read'],
])('%s is refused and named', (_, path, said) => {
  const at = path()
  expect(() => imageUrl(at)).toThrow(said)
})
