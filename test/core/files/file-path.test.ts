import { dirname, join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import { filePathOf, idOfName, newFileOf, safeContentType, safeFileName } from '../../../core/files/file-path.ts'
import { newId } from '../../../core/ids.ts'

const organizationId = newId('org')
const file = { id: newId('file'), organizationId, contentType: 'image/png' }

test('a file lies in the folder of its organization, under its id', () => {
  const place = filePathOf('/data/files', file)
  expect(place).toBe(`/data/files/${organizationId}/${file.id}.png`)
  expect(idOfName(`${file.id}.png`)).toBe(file.id)
  expect(filePathOf('/data/files', { ...file, contentType: 'application/x-unknown' })).toBe(
    `/data/files/${organizationId}/${file.id}.bin`,
  )
})

/** Paths that lead out of a folder, and strings that only resemble an id. */
const hostile = [
  '',
  '.',
  '..',
  '../..',
  '/etc/passwd',
  '..\\..',
  '%2e%2e%2f',
  'file-',
  'file-../../../../etc/passwd',
  `${newId('file')}/../x`,
  `${newId('file')}\0`,
  `${newId('file')}\n`,
  ` ${newId('file')}`,
  newId('file').toLowerCase(),
  newId('job'),
  newId('tok'),
  'incoming',
  '__proto__',
  'org_',
]

test.each(hostile)('an id %j has no path', wrong => {
  expect(() => filePathOf('/data/files', { ...file, id: wrong })).toThrow('id')
  expect(() => filePathOf('/data/files', { ...file, organizationId: wrong })).toThrow('id')
})

test.each([
  ['image/png', 'image/png'],
  ['IMAGE/JPEG; charset=x', 'image/jpeg'],
  ['text/html', 'application/octet-stream'],
  ['image/svg+xml', 'application/octet-stream'],
  ['application/xhtml+xml', 'application/octet-stream'],
  ['application/pdf', 'application/pdf'],
  ['text/plain; charset=utf-8', 'text/plain'],
  ['constructor', 'application/octet-stream'],
  ['', 'application/octet-stream'],
  ['image/png\r\nx: y', 'application/octet-stream'],
])('the type %j is served as %s', (said, served) => {
  expect(safeContentType(said)).toBe(served)
})

test.each([
  ['cat.png', 'cat.png'],
  ['../../etc/passwd', 'passwd'],
  ['C:\\Users\\x\\cat.png', 'cat.png'],
  ['..', 'file'],
  ['.bashrc', 'bashrc'],
  ['/', 'file'],
  ['', 'file'],
  ['a\r\nset-cookie: x', 'a__set-cookie_ x'],
  ['a"b<c>.png', 'a_b_c_.png'],
  ['gpj.\u202ecat', 'gpj._cat'],
  ['Käse 猫.png', 'Käse 猫.png'],
  ['\ud800.png', '\ufffd.png'],
])('the name %j becomes %j', (said, name) => {
  expect(safeFileName(said, 'file')).toBe(name)
})

test('a long name is shortened before its extension, at a whole character', () => {
  expect(safeFileName(`${'x'.repeat(500)}.png`, 'file')).toBe(`${'x'.repeat(124)}.png`)
  const cut = safeFileName(`x${'🐈'.repeat(200)}.png`, 'file')
  expect(cut.length).toBeLessThanOrEqual(128)
  expect(cut.isWellFormed()).toBe(true)
})

test('no name leads out of the folder that it is saved into', () => {
  for (const name of [...hostile, ...hostile.map(one => `${one}/x`), ...hostile.map(one => `x/${one}`)])
    expect(dirname(resolve(join('/save', safeFileName(name, 'file')))), name).toBe('/save')
})

test('the time that a file is kept begins when it is created', () => {
  const facts = { name: 'a', contentType: 'text/plain', purpose: 'upload', expiresAt: { keptMs: 3_600_000 } } as const
  const { createdAt, expiresAt } = newFileOf(file.id, organizationId, facts, { bytes: 1, sha256: '' })
  expect(expiresAt).toBe(createdAt + 3_600_000)
})
