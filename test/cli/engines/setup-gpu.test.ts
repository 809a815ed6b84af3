import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { gpuPackages } from '../../../gpu/engines/gguf/gpu-packages.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

/** A machine with this output of nvidia-smi. */
function machine(cards: string) {
  const folder = temporaryFolder()
  const program = join(folder, 'bin', 'nvidia-smi')
  mkdirSync(join(folder, 'bin'))
  writeFileSync(program, `#!/bin/sh\necho '${cards}'\n`)
  chmodSync(program, 0o755)
  const env = { PATH: `${join(folder, 'bin')}:${process.env.PATH}` }
  return (...args: string[]) => infer(['engine', 'setup', 'gpu', '--data-dir', join(folder, 'data'), ...args], { env })
}
const card = (driver: string, capability: string) =>
  `0, GPU-1, Test Card, ${driver}, ${capability}, 24576, 1, [N/A], 0, 40, 20, 300`

test.each([
  ['590.48.01', '8.9', /nvidia-cublas +13\..*542 MiB from registry.npmjs.org and pypi.org into/s, 'CUDA 13 for 1 card'],
  ['550.54.14', '8.0', /linux-x64-cuda-ext.*nvidia-cublas-cu12 +12\..*652 MiB from/s, 'CUDA 12 for 1 card'],
  ['470.10.01', '8.6', /linux-x64-vulkan.*23.2 MiB from registry.npmjs.org into/s, 'CUDA needs driver 525'],
])('driver %s, capability %s', async (driver, capability, shown, why) => {
  const { exitCode, stdout, stderr } = await machine(card(driver, capability))()
  expect(stdout).toMatch(shown)
  expect(stdout).toMatch(/LICENSE/)
  expect(stderr).toContain(why)
  expect([exitCode, stderr.includes('Add --yes to confirm.')]).toEqual([64, true])
})

test('wrong use is refused, and other registries are named', async () => {
  const setup = machine(card('590.48', '8.9'))
  expect((await setup('--from', 'a', '--download-only', 'b')).stderr).toContain('exclude each other')
  expect((await setup('--backend', 'rocm')).exitCode).toBe(64)
  const { stdout } = await setup('--npm-registry', 'http://npm.test/', '--index-url', 'http://pypi.test/simple')
  expect(stdout).toContain('from npm.test and pypi.test into')
  const missing = await setup('--from', '/nonexistent', '--yes')
  expect(missing.stderr).toMatch(/\/nonexistent has no file linux-x64-cuda-[\d.]+tgz/)
})

test('update --check says what would change, and changes nothing', async () => {
  const folder = temporaryFolder()
  const check = (...args: string[]) => infer(['engine', 'update', 'gpu', '--check', '--data-dir', folder, ...args])
  expect((await check()).stderr).toContain('Install one with: infer engine setup gpu')
  const { into, version } = gpuPackages.vulkan.find(({ registry }) => registry === 'npm')!
  const installed = join(folder, 'backends/node_modules', into)
  mkdirSync(installed, { recursive: true })
  const put = (one: string) => writeFileSync(join(installed, 'package.json'), JSON.stringify({ version: one }))
  put('0.0.1')
  const outdated = await check()
  expect([outdated.exitCode, outdated.stdout]).toEqual([
    0,
    `Change of the backend vulkan: 0.0.1 → ${version}, a download of 23.2 MiB. Install it with: infer engine update gpu\n`,
  ])
  expect(json(await check('--json'))).toMatchObject({
    backends: [{ name: 'vulkan', version: '0.0.1', state: 'outdated', latest: version }],
  })
  put(version)
  expect((await check()).stdout).toContain(`The backend vulkan ${version} is not complete; a download of 23.2 MiB`)
})
