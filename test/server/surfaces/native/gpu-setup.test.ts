import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gpuPackages } from '../../../../gpu/engines/gguf/gpu-packages.ts'
import { startApp, type TestApp } from '../../../_app.ts'
import { cardLine, installNvidiaSmi } from '../../../fixtures/nvidia-smi.ts'

/** A registry that answers as `answer` says. */
let answer: (response: ServerResponse) => void
const asked: string[] = []
const registry = createServer((request, response) => {
  asked.push(request.url!)
  answer(response)
})
const kept = { path: process.env.PATH, registry: process.env.npm_config_registry }
const size = gpuPackages.vulkan[0]!.bytes

const programs = mkdtempSync(join(tmpdir(), 'infer-gpu-setup-'))
let app: TestApp
beforeAll(async () => {
  await new Promise<void>(resolve => registry.listen(0, '127.0.0.1', resolve))
  installNvidiaSmi(programs, { cards: `echo '${cardLine({ driver_version: '470.10.01', compute_cap: '8.6' })}'` })
  process.env.PATH = `${programs}:${kept.path}`
  process.env.npm_config_registry = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`
  app = await startApp()
})
afterAll(async () => {
  process.env.PATH = kept.path
  if (kept.registry === undefined) delete process.env.npm_config_registry
  else process.env.npm_config_registry = kept.registry
  await app[Symbol.asyncDispose]()
  rmSync(programs, { recursive: true })
  registry.closeAllConnections()
  registry.close()
})

async function ask(method: string, token?: string) {
  const answered = await app.fetch('/api/gpu-setup', { method, ...(token === undefined ? {} : { token }) })
  return answered.status
}
// oxlint-disable-next-line no-explicit-any
const body = async (method = 'GET'): Promise<any> => (await app.fetch('/api/gpu-setup', { method })).json()
const ended = () => expect.poll(async () => (await body()).run.status)

test('it says what the GPUs need, and downloads nothing', async () => {
  expect(await body()).toMatchObject({
    needed: true,
    installed: false,
    backend: 'vulkan',
    why: expect.stringContaining('Vulkan for 1 card') as string,
    packages: [{ name: expect.stringContaining('vulkan') as string, bytes: size, license: 'MIT' }],
    bytes: size,
    run: null,
  })
  expect(asked).toEqual([])
})

test('a setup shows its progress, is begun once, and can be stopped', async () => {
  answer = response => {
    response.writeHead(200, { 'content-length': size })
    response.write(Buffer.alloc(1 << 20))
  }
  expect(await ask('DELETE')).toBe(404)
  expect(await ask('POST')).toBe(202)
  expect(await ask('POST')).toBe(409)
  await expect
    .poll(async () => (await body()).run)
    .toMatchObject({
      status: 'running',
      file: expect.stringContaining('vulkan') as string,
      bytes: expect.toSatisfy((bytes: number) => bytes > 0) as number,
      total_bytes: size,
    })
  expect(await ask('DELETE')).toBe(200)
  await ended().toBe('cancelled')
})

test('a setup that fails says why, and the next one continues it', async () => {
  answer = response => response.writeHead(404).end()
  expect(await ask('POST')).toBe(202)
  await ended().toBe('failed')
  expect((await body()).run.detail).toMatch(/vulkan/)
})

test('only the owner of the machine may', async () => {
  const made = await app.fetch('/api/organizations', { body: { name: 'guests' } })
  const { organization } = (await made.json()) as { organization: { id: string } }
  const token = await app.fetch(`/api/organizations/${organization.id}/tokens`, {
    body: { name: 'guest', scopes: ['admin:read', 'admin:write'] },
  })
  const { secret } = (await token.json()) as { secret: string }
  for (const method of ['GET', 'POST', 'DELETE']) expect([method, await ask(method, secret)]).toEqual([method, 403])
})
