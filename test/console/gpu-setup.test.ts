import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { gpuPackages } from '../../gpu/engines/gguf/gpu-packages.ts'
import { cardLine, installNvidiaSmi } from '../fixtures/nvidia-smi.ts'
import { openConsole, sizes, type TestConsole } from './_console.ts'

/** Downloads that wait, of a registry that sends the first megabyte of a package. */
const open: ServerResponse[] = []
const registry = createServer((request, response) => {
  response.writeHead(200, { 'content-length': gpuPackages.vulkan[0]!.bytes })
  response.write(Buffer.alloc(1 << 20))
  open.push(response)
})
const programs = mkdtempSync(join(tmpdir(), 'infer-gpu-setup-'))

let console: TestConsole
beforeAll(async () => {
  await new Promise<void>(resolve => registry.listen(0, '127.0.0.1', resolve))
  installNvidiaSmi(programs, { cards: `echo '${cardLine({ driver_version: '470.10.01', compute_cap: '8.6' })}'` })
  console = await openConsole(undefined, {
    PATH: `${programs}:${process.env.PATH}`,
    npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}`,
  })
})
afterAll(async () => {
  await console?.[Symbol.asyncDispose]()
  registry.closeAllConnections()
  registry.close()
  rmSync(programs, { recursive: true })
})

test.each(sizes)('on %s a person sees that the GPU is not used, sets it up and stops that', async (name, size) => {
  await using opened = await console.open('/', { size })
  const { page } = opened
  const offer = page.getByRole('button', { name: name === 'a desktop' ? /^Set up \(23/ : 'Continue' })
  if (name === 'a desktop')
    await page.getByText('The built-in engine does not use the GPUs: it needs Vulkan for 1 card').waitFor()
  await offer.click()
  const dialog = page.getByRole('dialog', { name: 'Set up the GPUs' })
  await dialog.getByRole('table', { name: 'Packages' }).getByText('MIT').waitFor()
  await opened.expectAccessible()
  await opened.screenshot('gpu-setup')
  await dialog.getByRole('button', { name: 'Download and accept the licenses' }).click()
  const running = page.getByRole('region', { name: 'Set up the GPUs' })
  await running.getByText(/of 23/).waitFor()
  await opened.expectAccessible()
  await opened.screenshot('gpu-setup-runs')
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  await running.getByRole('button', { name: 'Cancel' }).click()
  await page.getByRole('button', { name: 'Continue' }).waitFor()
})
