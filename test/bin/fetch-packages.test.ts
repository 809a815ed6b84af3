import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { fetchPackages } from '../../bin/fetch-packages.ts'

// A fake npm that packs a local folder and records its arguments.
let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'infer-fetch-'))
  mkdirSync(join(folder, 'package/bin'), { recursive: true })
  writeFileSync(join(folder, 'package/bin/node'), 'native code')
  execFileSync('tar', ['-czf', join(folder, 'one.tgz'), '-C', folder, 'package'])
  mkdirSync(join(folder, 'tools'))
  writeFileSync(
    join(folder, 'tools/npm'),
    `#!/bin/sh\necho "$5" >> ${folder}/asked\ncp ${folder}/one.tgz "$4"/one.tgz\n`,
  )
  chmodSync(join(folder, 'tools/npm'), 0o755)
  vi.stubEnv('PATH', `${join(folder, 'tools')}${delimiter}${process.env.PATH}`)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true, force: true })
})

const asked = (): string[] => readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n')
function lock(integrity: string | undefined): string {
  const path = join(folder, 'package-lock.json')
  writeFileSync(path, JSON.stringify({ packages: { 'node_modules/@img/one': { version: '1.2.3', integrity } } }))
  return path
}
const right = () => `sha512-${hash('sha512', readFileSync(join(folder, 'one.tgz')), 'base64')}`

test('a package is downloaded once, in the version of the lock file', () => {
  const target = join(folder, 'node_modules')
  fetchPackages(['@img/one'], target, lock(right()))
  fetchPackages(['@img/one'], target, lock(right()))
  expect(readFileSync(join(target, '@img/one/bin/node'), 'utf8')).toBe('native code')
  expect(asked()).toEqual(['@img/one@1.2.3'])
})

test('a tarball that does not match the lock file is refused and removed', () => {
  const target = join(folder, 'node_modules')
  expect(() => fetchPackages(['@img/one'], target, lock('sha512-AAAA'))).toThrow(
    /^@img\/one@1\.2\.3 is sha512-.*, and the lock file has sha512-AAAA\.$/,
  )
  expect(readdirSync(join(target, '@img'))).toEqual([])
})

test('a package without an integrity value is not downloaded', () => {
  expect(() => fetchPackages(['@img/one'], folder, lock(undefined))).toThrow(/has no @img\/one with an integrity/)
})
