import { existsSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { zip } from '../../../fixtures/package-index.ts'
import { openReleaseServer } from '../../../fixtures/release-server.ts'
import { infer, json, temporaryFolder } from '../../_infer.ts'
import { answer, fakeServer } from '../../_server.ts'
import { llamaArchive, serverProgram, shell } from './_program.ts'

const help = shell(`case "$1" in
  --version) echo "stable-diffusion.cpp version 929, commit 3f8527a" ;;
  *) echo "invalid parameter for argument: $1" >&2; echo "Usage: sd-server --listen-port PORT"; exit 1 ;;
esac`)
const sdFile = 'sd-master-3f8527a-bin-Linux-Ubuntu-24.04-x86_64.zip'
/** As stable-diffusion.cpp publishes it, here with a library that a link names. */
const stableDiffusion = (program = help) =>
  zip(
    { 'sd-server': program, 'libsd.so.1': Buffer.from('library'), 'libsd.so': Buffer.from('libsd.so.1') },
    { 'sd-server': 0o100755, 'libsd.so.1': 0o100644, 'libsd.so': 0o120777 },
  )
const llama = (version: string) => ({
  tag: version,
  files: { [`llama-${version}-bin-ubuntu-x64.tar.gz`]: llamaArchive(version, serverProgram(version)) },
})

async function setUp(repositories: Parameters<typeof openReleaseServer>[0]) {
  const server = await openReleaseServer(repositories)
  onTestFinished(() => server.close())
  const folder = temporaryFolder()
  const dataDir = join(folder, 'data')
  const engine = (...args: string[]) => infer(['engine', ...args, '--data-dir', dataDir])
  const online = (...args: string[]) => engine(...args, '--from', `${server.url}/`)
  return { server, folder, dataDir, engine, online }
}

test('sd-server: shown first, downloaded on one machine, installed on another, listed and removed', async () => {
  const releases = {
    'leejet/stable-diffusion.cpp': [{ tag: 'master-929-3f8527a', files: { [sdFile]: stableDiffusion() } }],
  }
  const { folder, dataDir, engine, online, server } = await setUp(releases)
  const shown = await online('setup', 'sd-server', '--backend', 'cpu')
  expect(shown.stdout).toMatch(/sd-master-3f8527a-bin-Linux\S+ +master-929-3f8527a +\d+ B +MIT/)
  expect(shown.stdout).toContain(`/leejet/stable-diffusion.cpp, into ${join(dataDir, 'engines/sd-server')}`)
  expect([shown.exitCode, shown.stderr]).toEqual([64, expect.stringContaining('Add --yes to confirm.')])
  expect(server.requests).toHaveLength(1)

  const usb = join(folder, 'usb')
  const { stdout } = await online('setup', 'sd-server', '--backend', 'cpu', '--download-only', usb, '--yes')
  expect(stdout).toContain(`On the other machine: infer engine setup sd-server --backend cpu --from ${usb}`)
  expect(existsSync(join(dataDir, 'engines'))).toBe(false)
  const requests = server.requests.length
  const installed = json(await engine('setup', 'sd-server', '--backend', 'cpu', '--from', usb, '--yes', '--json'))
  expect(installed).toMatchObject({
    engine: 'sd-server',
    version: 'master-929-3f8527a',
    is_current: true,
    says: '929, commit 3f8527a',
    trial: 'The program starts. No image was made, because that needs a model: try one with infer model test.',
  })
  expect(server.requests).toHaveLength(requests)
  const bin = join(dataDir, 'engines/sd-server/bin')
  expect([readlinkSync(join(bin, 'libsd.so')), readFileSync(join(bin, 'libsd.so'), 'utf8')]).toEqual([
    'libsd.so.1',
    'library',
  ])
  const { stdout: listed } = await engine('list')
  expect(listed).toMatch(/sd-server \(cpu\) +master-929-3f8527a +current +\S+ B +\//)
  expect(listed).toMatch(/\nsd-server +\/.*\/engines\/sd-server\/bin\/sd-server\n/)

  expect((await engine('remove', 'sd-server', '--yes')).stdout).toMatch(/^Deleted the engine 'sd-server': /)
  expect(existsSync(join(dataDir, 'engines/sd-server'))).toBe(false)

  writeFileSync(join(usb, sdFile), stableDiffusion(shell('echo other')))
  const changed = await engine('setup', 'sd-server', '--backend', 'cpu', '--from', usb, '--yes')
  expect(changed.stderr).toMatch(
    /is not the file of the release: its size differs, so nothing was installed\. Copy it again/,
  )
  rmSync(usb, { recursive: true })
  expect((await engine('setup', 'sd-server', '--from', usb, '--yes')).stderr).toContain('--download-only DIR')
})

test('llama-server: an update is shown before it is made, and a model keeps its engine from being removed', async () => {
  const releases = [llama('b1')]
  const { dataDir, engine, online } = await setUp({ 'ggml-org/llama.cpp': releases })
  expect((await engine('update', 'llama-server')).stderr).toContain('Install it with: infer engine setup llama-server')
  await online('setup', 'llama-server', '--backend', 'cpu', '--yes')
  expect((await online('update', 'llama-server', '--yes')).stdout).toBe('llama.cpp b1 is the latest release.\n')
  releases.push(llama('b2'))
  const check = await online('update', 'llama-server', '--check', '--json')
  expect(json(check)).toEqual({ engine: 'llama-server', version: 'b1', latest: 'b2', is_newer: true })
  const { stdout } = await online('update', 'llama-server', '--yes')
  expect(stdout).toContain('llama.cpp b2 for the processor is installed. The program answers: "b2".')
  expect(stdout).not.toContain('Deleted')
  releases.push(llama('b3'))
  const model = { id: 'm', engine: 'llama-server', engine_version: 'b2', source: '/m.gguf' }
  // A server with another file than infer.yaml.
  const { url } = await fakeServer(({ path }, response) =>
    answer(response, 200, path.startsWith('/api/models/') ? { id: 'm', settings: model, engines: [] } : status),
  )
  const status = { models: [{ model_id: 'm', engine: 'llama-server', tasks: [] }] }
  writeFileSync(join(dataDir, 'root-token'), 'token')
  writeFileSync(join(dataDir, 'server.json'), JSON.stringify({ url, pid: process.pid }))
  const update = await online('update', 'llama-server', '--yes')
  expect(update.stdout).toContain('Deleted what nothing uses any more: b1.')
  rmSync(join(dataDir, 'server.json'))
  writeFileSync(join(dataDir, 'infer.yaml'), JSON.stringify({ models: [model] }))
  expect((await engine('remove', 'llama-server', '--yes')).stderr).toContain(
    "'m' in infer.yaml uses the engine 'llama-server'. Remove this model first",
  )
})

test('wrong use is refused', async () => {
  const { engine } = await setUp({})
  const refusal = async (...args: string[]) => (await engine('setup', 'llama-server', ...args)).stderr
  expect(await refusal('--from', 'a', '--download-only', 'b')).toContain('exclude each other')
  expect(await refusal('--from', 'a', '--release', 'b1')).toContain('--release is for downloads')
  expect(await refusal('--release', '../b1')).toContain('Write the name of a release, such as b11101.')
  expect(await refusal('--backend', 'metal')).toContain('cpu, cuda, rocm, vulkan')
})
