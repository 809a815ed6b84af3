import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { extractTarball } from '../../../../core/models/package-index/extract-tarball.ts'
import { type TarEntry, tarball } from '../../../fixtures/npm-package.ts'

async function extract(archive: Buffer, isWanted: (path: string) => boolean = () => true, kind?: 'program') {
  const folder = mkdtempSync(join(tmpdir(), 'infer-tarball-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [path, target] = [join(folder, 'a.tgz'), join(folder, 'target')]
  writeFileSync(path, archive)
  const thrown = await extractTarball(path, target, { isWanted, kind, signal: new AbortController().signal }).catch(
    (error: unknown) => String(error),
  )
  return { target, thrown, outside: () => readdirSync(folder).filter(name => name !== 'a.tgz' && name !== 'target') }
}

const large = randomBytes(300_001)
const attributes = (path: string): TarEntry => {
  const text = ` path=${path}\n`
  return { path: 'package/PaxHeader', type: 'x', bytes: Buffer.from(`${text.length + 2}${text}`) }
}

test('files are written without their first folder, those that are not wanted are left out', async () => {
  const long = `${'n'.repeat(120)}.so`
  const { target, thrown } = await extract(
    tarball([
      { path: 'package', type: '5' },
      { path: 'package/package.json', bytes: Buffer.from('{}') },
      { path: 'package/bins/large.so', bytes: large },
      { path: 'package/bins/other.so', bytes: large },
      { path: 'package/empty' },
      attributes(`package/${long}`),
      { path: 'package/cut', bytes: Buffer.from('long') },
    ]),
    path => path !== 'bins/other.so',
  )
  expect(thrown).toBeUndefined()
  expect(new Set(readdirSync(target, { recursive: true, encoding: 'utf8' }))).toEqual(
    new Set(['bins', 'bins/large.so', 'empty', long, 'package.json']),
  )
  expect(readFileSync(join(target, 'bins/large.so')).equals(large)).toBe(true)
  expect(readFileSync(join(target, long), 'utf8')).toBe('long')
})

const whole = tarball([{ path: 'package/a', bytes: large }])
test.each<[what: string, archive: Buffer, said: RegExp]>([
  ['a path that leaves the folder', tarball([{ path: 'package/../../escaped', bytes: large }]), /leaves the folder/],
  ['an absolute path', tarball([{ path: '/tmp/escaped', bytes: large }]), /leaves the folder/],
  [
    'a long path that leaves',
    tarball([attributes('package/../../escaped'), { path: 'package/a' }]),
    /leaves the folder/,
  ],
  ['a link', tarball([{ path: 'package/a', type: '2', link: '/etc' }]), /'a' is not a plain file/],
  ['an archive that ends too early', whole.subarray(0, whole.length - 1000), /cannot be read|unexpected end of file/],
  ['no archive', Buffer.from('hello'), /cannot be unpacked/],
])('refused: %s', async (_, archive, said) => {
  const { thrown, outside, target } = await extract(archive)
  expect(thrown).toMatch(said)
  expect(outside()).toEqual([])
  expect(existsSync(join(target, '..', 'escaped'))).toBe(false)
})

test('refused: a header whose sum is wrong', async () => {
  const { gunzipSync, gzipSync } = await import('node:zlib')
  const bytes = gunzipSync(whole)
  bytes[9]! ^= 1
  expect((await extract(gzipSync(bytes))).thrown).toMatch(/a header of it is wrong/)
})

test('of a program: paths, permissions and links to files of the same folder are kept', async () => {
  const { target, thrown } = await extract(
    tarball([
      { path: './program-1/', type: '5' },
      { path: './program-1/run', bytes: Buffer.from('run'), mode: 0o755 },
      { path: './program-1/lib.so', type: '2', link: 'lib.so.1' },
      { path: './program-1/lib.so.1', bytes: Buffer.from('library') },
    ]),
    undefined,
    'program',
  )
  expect(thrown).toBeUndefined()
  expect(readFileSync(join(target, 'program-1', 'lib.so'), 'utf8')).toBe('library')
  const isProgram = (name: string) => (statSync(join(target, 'program-1', name)).mode & 0o100) !== 0
  expect([isProgram('run'), isProgram('lib.so.1')]).toEqual([true, false])
})

test.each(['/etc/passwd', '../other', '..', '.', 'a/b', ''])('of a program: refused is a link to %j', async link => {
  const { thrown } = await extract(tarball([{ path: 'a/l', type: '2', link }]), undefined, 'program')
  expect(thrown).toMatch(/'a\/l' is not a plain file/)
})

test('of a program: nothing is written through a link', async () => {
  const { thrown, target } = await extract(
    tarball([
      { path: 'a/one', bytes: Buffer.from('1') },
      { path: 'a/two', type: '2', link: 'one' },
      { path: 'a/two', bytes: Buffer.from('2') },
    ]),
    undefined,
    'program',
  )
  expect(thrown).toMatch(/it has a file twice/)
  expect(readFileSync(join(target, 'a/one'), 'utf8')).toBe('1')
})
