import { expect, test } from 'vitest'
import {
  extensionFor,
  fileNameWords,
  formatOf,
  nameFor,
  numbered,
  numberedPaths,
  outputTargetOf,
} from '../../../cli/generation/output-target.ts'
import { temporaryFolder } from '../_infer.ts'

test.each([
  ['A Cat, sitting!', 'a-cat-sitting'],
  ['../../etc/passwd', 'etc-passwd'],
  ['ein Bär läuft', 'ein-bär-läuft'],
  ['猫が走る', '猫が走る'],
  ['🐈 \u0000\u001b[2J', '2j'],
  ['-rf --out', 'rf-out'],
  ['one two three four five six seven eight nine ten', 'one-two-three-four-five-six-seven-eight'],
  ['x'.repeat(300), 'x'.repeat(40)],
  ['', ''],
])('%j becomes %j in a file name', (text, name) => {
  expect(fileNameWords(text)).toBe(name)
  expect(Buffer.byteLength(nameFor(text, Number.MAX_SAFE_INTEGER, '16x9'))).toBeLessThan(200)
})

test.each([
  ['a cat', 42, '', 'a-cat-42'],
  ['a cat', 42, '16x9', 'a-cat-42-16x9'],
  ['', undefined, '', 'infer'],
  ['!!', 0, '', 'infer-0'],
])('%j, seed %j, %j', (topic, seed, suffix, name) => expect(nameFor(topic, seed, suffix)).toBe(name))

test('file names are numbered', () => {
  expect([1, 2, 10].map(number => numbered('/f', 'cat', '.png', number))).toEqual([
    '/f/cat.png',
    '/f/cat-2.png',
    '/f/cat-10.png',
  ])
  expect(numberedPaths('/f/a.b/cat', 2)).toEqual(['/f/a.b/cat-1', '/f/a.b/cat-2'])
  expect(numberedPaths('cat.tar.png', 1)).toEqual(['cat.tar.png'])
})

test.each([
  ['image/jpeg', 'image.jpeg', '.jpg'],
  ['image/avif', 'image.avif', '.avif'],
  ['application/octet-stream', 'no name', ''],
  [undefined, undefined, ''],
  ['x/y', 'a.png/../../evil.sh', '.sh'],
])('%j and %j get the extension %j', (type, name, extension) => expect(extensionFor(type, name)).toBe(extension))

test.each([
  ['a.PNG', 'png'],
  ['a.jpg', 'jpeg'],
  ['a.mp4', 'mp4'],
  ['a.gif', undefined],
  ['png', undefined],
])('%s selects the format %j', (path, format) => expect(formatOf(path)).toBe(format))

test('--out names a file, a folder or standard output', () => {
  const folder = temporaryFolder()
  expect(outputTargetOf(undefined)).toEqual({ kind: 'folder', path: '.' })
  expect(outputTargetOf('-')).toEqual({ kind: 'stdout' })
  expect(outputTargetOf(folder)).toEqual({ kind: 'folder', path: folder })
  expect(outputTargetOf(`${folder}/new/`)).toEqual({ kind: 'folder', path: `${folder}/new/` })
  expect(outputTargetOf(`${folder}/cat.png`)).toEqual({ kind: 'file', path: `${folder}/cat.png` })
  expect(() => outputTargetOf(`${folder}/new/cat.png`)).toThrow('Create it first: mkdir -p')
  expect(() => outputTargetOf('')).toThrow('--out is empty')
})
