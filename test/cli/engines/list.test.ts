import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packagedLlama } from '../../../gpu/engines/gguf/gpu-packages.ts'
import { infer, inferProcess, json, temporaryFolder } from '../_infer.ts'

function program(folder: string, name: string): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, name)
  writeFileSync(path, '#!/bin/sh\n')
  chmodSync(path, 0o755)
  return path
}

test('backends for GPUs are listed with their state, updated and removed', async () => {
  const dataDir = temporaryFolder()
  const scope = join(dataDir, 'backends/node_modules/@node-llama-cpp')
  const put = (name: string, version: string) => {
    mkdirSync(join(scope, name), { recursive: true })
    writeFileSync(join(scope, name, 'package.json'), JSON.stringify({ version }))
  }
  const engine = (...args: string[]) => infer(['engine', ...args, '--data-dir', dataDir])
  expect((await engine('update', 'gpu')).stderr).toContain('Install one with: infer engine setup gpu')
  expect((await engine('remove', 'gpu', '--yes')).stderr).toContain('No backend for GPUs is installed')
  put('linux-x64-vulkan', '0.0.1')
  put('linux-x64-cuda', packagedLlama)
  put('linux-x64-cuda-ext', packagedLlama)
  const states = async () =>
    (json(await engine('list', '--json')) as { backends: { name: string; state: string }[] }).backends.map(
      ({ name, state }) => `${name} ${state}`,
    )
  expect(await states()).toEqual(['cuda-12 incomplete', 'vulkan outdated'])
  expect((await engine('list')).stdout).toMatch(/gpu \(vulkan\)\s+0\.0\.1\s+outdated/)
  expect((await engine('remove', 'gpu')).stderr).toContain('Add --yes to confirm.')
  expect((await engine('remove', 'gpu', '--yes')).stdout).toMatch(/^Deleted the backends for GPUs: \d+ B are free/)
  expect(await states()).toEqual([])
})

test('engines are found in environments and on the PATH', async () => {
  const dataDir = temporaryFolder()
  const worker = program(join(dataDir, 'engines', 'python', 'bin'), 'infer-worker')
  mkdirSync(join(dataDir, 'engines/python/lib/python3.12/site-packages/torch-2.11.0.dist-info'), { recursive: true })
  const whisper = program(join(dataDir, 'programs'), 'whisper-server')
  const list = (...args: string[]) =>
    inferProcess(['engine', 'list', '--data-dir', dataDir, ...args], { env: { PATH: join(dataDir, 'programs') } })
  const { environments, engines } = json(await list('--json')) as {
    environments: object[]
    engines: { engine: string; path: string | null; origin: string; state: string; advice: string | null }[]
  }
  expect(environments).toEqual([
    expect.objectContaining({ name: 'python', state: 'incomplete', versions: { torch: '2.11.0' } }),
  ])
  expect(
    engines.flatMap(({ engine, path, origin, state, advice }) =>
      path ? [{ engine, path, origin, state, advice }] : [],
    ),
  ).toEqual([
    { engine: 'whisper-server', path: whisper, origin: 'system', state: 'installed', advice: null },
    {
      engine: 'python',
      path: worker,
      origin: 'setup',
      state: 'installed',
      advice: 'Its installation was interrupted. Continue it with: infer engine setup python',
    },
  ])
  const { stdout } = await list()
  expect(stdout).toMatch(/python +torch 2\.11\.0 +incomplete/)
  expect(stdout).toMatch(/gguf\s+built in/)
  expect(stdout).toMatch(/sd-server\s+not installed\s+Install it with: infer engine setup sd-server/)
})
