import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import {
  build,
  forkedScript,
  packaged,
  readAsset,
  selfCommand,
  sqliteBinding,
  version,
  workerPath,
} from '../../core/assets.ts'

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

test('from source the program knows its version and that it is not packed', () => {
  expect({ version, build, packaged }).toEqual({ version: manifest.version, build: 'source', packaged: false })
})

test('the program can start itself again', () => {
  const { file, args, env } = selfCommand(['--version'])
  expect(execFileSync(file, args, { env, encoding: 'utf8' }).trim()).toBe(manifest.version)
})

test('the entries of the threads exist', () => {
  expect(existsSync(workerPath('cpu-worker'))).toBe(true)
  expect(existsSync(workerPath('store-writer'))).toBe(true)
})

test('the error for an asset that is not built names the command that builds it', () => {
  expect(() => readAsset('docs/no-such-asset.js')).toThrow(/no-such-asset\.js is missing\. Run: npm run build/)
})

test('from source fork() is unchanged and better-sqlite3 finds its own addon', () => {
  expect([forkedScript(), sqliteBinding()]).toEqual([undefined, undefined])
})
