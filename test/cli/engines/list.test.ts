import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { infer, json, temporaryFolder } from '../_infer.ts'

function program(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, name)
  writeFileSync(path, '#!/bin/sh\n')
  chmodSync(path, 0o755)
  return path
}

test('engines are found in environments and on the PATH', async () => {
  const dataDir = temporaryFolder()
  const worker = program(join(dataDir, 'engines', 'python', 'bin'), 'infer-worker')
  const whisper = program(join(dataDir, 'programs'), 'whisper-server')
  const list = (...args: string[]) =>
    infer(['engine', 'list', '--data-dir', dataDir, ...args], { env: { PATH: join(dataDir, 'programs') } })
  const { environments, engines } = json(await list('--json')) as {
    environments: { name: string; state: string }[]
    engines: { engine: string; path: string | null }[]
  }
  expect(environments).toEqual([expect.objectContaining({ name: 'python', state: 'incomplete' })])
  expect(engines.filter(({ path }) => path !== null)).toEqual([
    { engine: 'whisper-server', path: whisper },
    { engine: 'python', path: worker },
  ])
  const { stdout } = await list()
  expect(stdout).toMatch(/gguf\s+built in/)
  expect(stdout).toMatch(/sd-server\s+not installed/)
})
