import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { masterKey } from '../../core/config.ts'

const folder = mkdtempSync(join(tmpdir(), 'infer-key-'))
afterEach(() => vi.unstubAllEnvs())

test('the master key is read from the environment, or from the file that it names', () => {
  expect(masterKey()).toBeUndefined()
  vi.stubEnv('INFER_MASTER_KEY', 'abc')
  expect(masterKey()).toBe('abc')
  expect(process.env.INFER_MASTER_KEY).toBeUndefined()
  const path = join(folder, 'key')
  writeFileSync(path, 'def\n')
  vi.stubEnv('INFER_MASTER_KEY_FILE', path)
  expect([masterKey(), masterKey()]).toEqual(['def', 'def'])
  vi.stubEnv('INFER_MASTER_KEY', 'abc')
  expect(masterKey).toThrow('are both set')
  rmSync(folder, { recursive: true })
  vi.stubEnv('INFER_MASTER_KEY', undefined)
  expect(masterKey).toThrow(`The master key in ${path} cannot be read`)
})
