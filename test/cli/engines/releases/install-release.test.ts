import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { chooseBuild } from '../../../../cli/engines/releases/choose-build.ts'
import { findRelease, type ReleaseSource } from '../../../../cli/engines/releases/find-release.ts'
import { type Chosen, installRelease } from '../../../../cli/engines/releases/install-release.ts'
import { installedReleases, pruneReleases } from '../../../../cli/engines/releases/installed-releases.ts'
import { type ReleaseBackend, releaseKinds } from '../../../../cli/engines/releases/release-kinds.ts'
import { replaceFolder } from '../../../../cli/engines/replace-folder.ts'
import { hubSettings } from '../../../../core/models/hub/settings.ts'
import { Model } from '../../../../core/models/model.ts'
import { enginePath } from '../../../../gpu/launcher/environment.ts'
import { presetOf } from '../../../../gpu/presets/presets.ts'
import { probeSandbox } from '../../../../gpu/sandbox/probe.ts'
import { findProgram } from '../../../../gpu/sandbox/program.ts'
import { tarball } from '../../../fixtures/npm-package.ts'
import { openReleaseServer } from '../../../fixtures/release-server.ts'
import { temporaryFolder } from '../../_infer.ts'
import { llamaArchive, serverProgram, shell } from './_program.ts'

const kind = releaseKinds['llama-server']
const fileOf = (version: string) => `llama-${version}-bin-ubuntu-x64.tar.gz`
const published = (version: string, program = serverProgram(version)) => ({
  tag: version,
  files: { [fileOf(version)]: llamaArchive(version, program) },
})
const processor = {
  architecture: 'x64',
  rocm: null,
  cards: { nvidia: [], driver: null, fault: null, bus: [], renders: false },
}

const sandbox = await probeSandbox({ PATH: process.env.PATH ?? '' })

interface InstallSettings {
  beside?: boolean
  wanted?: ReleaseBackend
  served?: () => ReadonlySet<string> | null
  signal?: AbortSignal
  onStep?: (step: string) => void
}

/** A data directory, and a server with these releases. */
async function setUp(
  releases: Parameters<typeof openReleaseServer>[0][string],
  { models = [], cutAfter }: { models?: readonly object[]; cutAfter?: number } = {},
) {
  const dataDir = temporaryFolder()
  const server = await openReleaseServer({ [kind.repository]: releases }, cutAfter === undefined ? {} : { cutAfter })
  onTestFinished(() => server.close())
  const config = join(dataDir, 'infer.yaml')
  const offer = (offered: readonly object[]) => writeFileSync(config, JSON.stringify({ models: offered }))
  offer(models)
  const source: ReleaseSource = {
    mirror: server.url,
    hub: hubSettings({}),
    retryRules: { attempts: 2, backoffMs: 1, silenceMs: 5_000 },
  }
  const events: string[] = []
  async function install(
    version?: string,
    {
      beside = false,
      wanted = 'cpu',
      served = () => new Set(),
      signal = new AbortController().signal,
      onStep = () => {},
    }: InstallSettings = {},
  ) {
    const release = await findRelease(kind, version, source, signal)
    const files = release.files.map(({ name }) => name)
    const chosen = chooseBuild(kind, { version: release.version, files }, processor, wanted) as Chosen
    return installRelease({
      kind,
      release,
      chosen,
      dataDir,
      config,
      served: async () => served(),
      source,
      given: undefined,
      beside,
      signal,
      onStep,
      sandbox,
      host: { PATH: process.env.PATH },
      onEvent: ({ event }) => void events.push(event),
      times: { start: 10_000, load: 10_000, answer: 10_000 },
    })
  }
  const folder = join(dataDir, 'engines', 'llama-server')
  const versions = () => installedReleases(dataDir, kind).map(one => `${one.version}${one.isCurrent ? ' current' : ''}`)
  /** What models without and with a version start. */
  const programOf = (engine_version?: string) => {
    const model = Model.parse({ id: 'm', engine: kind.name, source: '/m.gguf', engine_version })
    const preset = presetOf(model)
    const facts = { slots: 1, threads: 1, gpus: 0, memoryShare: 1, freeShare: 1, bytes: 0, backend: null }
    const found = findProgram(
      preset.command(model, facts)[0]!,
      enginePath(dataDir, '/nowhere', preset.environments!(model)),
    )
    return found && realpathSync(found).replace(`${realpathSync(folder)}/`, '')
  }
  return { dataDir, folder, server, install, events, versions, programOf, offer }
}

test('a release is unpacked with its links, tried, and found by models', async () => {
  const { install, folder, versions, programOf } = await setUp([published('b1')])
  const { trial } = await install()
  expect(trial).toEqual({ says: 'b1 (abc)', text: 'The program answers: "b1".' })
  expect(versions()).toEqual(['b1 current'])
  expect(readlinkSync(join(folder, 'bin'))).toBe('b1/bin')
  expect(readFileSync(join(folder, 'bin', 'libllama.so'), 'utf8')).toBe('library')
  expect([programOf(), programOf('b1'), programOf('b2')]).toEqual([
    'b1/bin/llama-server',
    'b1/bin/llama-server',
    undefined,
  ])
  expect(readdirSync(folder).toSorted()).toEqual(['b1', 'bin'])
})

test.skipIf(sandbox.tool === null)('a program that is tried cannot read the data directory', async () => {
  const reads = (version: string, dataDir: string) =>
    Buffer.from(
      serverProgram(version)
        .toString()
        .replace('const given', `console.error(require('node:fs').readFileSync('${dataDir}/root-token'))\nconst given`),
    )
  const releases = [published('b1')]
  const { install, dataDir } = await setUp(releases)
  writeFileSync(join(dataDir, 'root-token'), 'secret')
  releases.push(published('b2', reads('b2', dataDir)))
  await expect(install('b2')).rejects.toThrow(/no such file or directory, open .*root-token|ended with exit code 1/)
  await install('b1')
})

test('a release that only points to another one is followed', async () => {
  const { install, versions } = await setUp([
    published('b7'),
    { tag: 'v0.5.0', files: { 'nightly-tag.txt': Buffer.from('b7\n') } },
  ])
  await install()
  expect(versions()).toEqual(['b7 current'])
})

test('an interrupted download continues with the bytes that it has', async () => {
  const { install, server, events, versions } = await setUp([published('b1')], { cutAfter: 100 })
  await install()
  const downloads = server.requests.filter(({ path }) => path.includes('/download/'))
  expect(downloads.map(({ range }) => range)).toEqual([undefined, 'bytes=100-'])
  expect([events.includes('retry'), versions()]).toEqual([true, ['b1 current']])
})

test.each<[what: string, program: Buffer, said: RegExp]>([
  ['SIGILL', shell('kill -ILL $$'), /built for a processor with instructions that this one lacks/],
  ['another kind of processor', foreignProgram(), /was built for another kind of processor than this one/],
  ['an error', shell('echo no luck >&2; exit 7'), /ended with exit code 7: no luck/],
  ['a crash while it loads', shell('[ "$1" = --version ] || kill -SEGV $$'), /it was ended by SIGSEGV/],
  [
    'a wrong answer',
    Buffer.from(serverProgram('b2').toString().replace("{ text: 'b2' }", '{}')),
    /its answer cannot be read: it has no text/,
  ],
])('a release whose trial ends with %s replaces nothing', async (_, program, said) => {
  const { install, folder, versions, programOf } = await setUp([published('b1'), published('b2', program)])
  await expect(install('b2')).rejects.toThrow(/Nothing was installed\.$/)
  expect(versions()).toEqual([])
  await install('b1')
  await expect(install('b2')).rejects.toThrow(said)
  await expect(install('b2')).rejects.toThrow(/Models keep using b1\.$/)
  expect([versions(), programOf()]).toEqual([['b1 current'], 'b1/bin/llama-server'])
  expect(readdirSync(folder).toSorted()).toEqual(['b1', 'bin', 'downloads'])
})

/** A program of this machine that says that it is one for RISC-V. */
function foreignProgram(): Buffer {
  const bytes = readFileSync('/bin/true')
  bytes.writeUInt16LE(0xf3, 18)
  return bytes
}

test('a build for GPUs that finds none is refused, and works where it finds one', async () => {
  const vulkan = (version: string, devices: string) => ({
    tag: version,
    files: {
      [`llama-${version}-bin-ubuntu-vulkan-x64.tar.gz`]: llamaArchive(version, serverProgram(version, devices)),
    },
  })
  const { install, versions } = await setUp([vulkan('b1', '  (none)'), vulkan('b2', '  Vulkan0: Card (8192 MiB)')])
  await expect(install('b1', { wanted: 'vulkan' })).rejects.toThrow(/is built for Vulkan and finds no GPU/)
  await install('b2', { wanted: 'vulkan' })
  expect(versions()).toEqual(['b2 current'])
})

test('what cannot be verified or unpacked is not installed', async () => {
  const { install, versions, folder } = await setUp([
    { ...published('b1'), digest: () => `sha256:${'0'.repeat(64)}` },
    { ...published('b2'), digest: () => null },
    { tag: 'b3', files: { [fileOf('b3')]: tarball([{ path: 'llama-b3/README', bytes: Buffer.from('x') }]) } },
    { tag: 'b4', files: { [fileOf('b4')]: tarball([{ path: 'a/llama-server', type: '2', link: '/bin/sh' }]) } },
    { tag: 'b5', files: { [fileOf('b5')]: tarball([{ path: '../llama-server', bytes: shell('true') }]) } },
  ])
  await expect(install('b1')).rejects.toThrow(/is damaged: its sha256 is .* It was deleted/)
  await expect(install('b2')).rejects.toThrow(/b2 publishes no SHA-256 for/)
  await expect(install('b3')).rejects.toThrow(/has no program 'llama-server'/)
  await expect(install('b4')).rejects.toThrow(/is not a plain file/)
  await expect(install('b5')).rejects.toThrow(/leaves the folder/)
  await expect(install('b6')).rejects.toThrow(/has no release 'b6' of ggml-org\/llama\.cpp/)
  expect(versions()).toEqual([])
  expect(existsSync(join(folder, 'bin'))).toBe(false)
})

test('a running engine keeps its version during an update, a model keeps the one that it names', async () => {
  const pin = { id: 'm', engine: kind.name, source: '/m.gguf', engine_version: 'b1' }
  const { install, folder, versions, programOf, offer, dataDir } = await setUp(
    ['b1', 'b2', 'b3', 'b4'].map(one => published(one)),
    {
      models: [pin],
    },
  )
  await install('b1')
  await install('b2')
  expect([versions(), programOf(), programOf('b1')]).toEqual([
    ['b2 current', 'b1'],
    'b2/bin/llama-server',
    'b1/bin/llama-server',
  ])
  // A program that is no script, as real ones are.
  cpSync('/bin/sleep', join(folder, 'b2', 'bin', 'llama-server'))
  const engine = await running(join(folder, 'bin', 'llama-server'))
  await install('b3')
  const { deleted, running: kept } = await install('b4')
  expect([deleted, kept, versions(), programOf()]).toEqual([
    [],
    ['b2'],
    ['b4 current', 'b1', 'b2', 'b3'],
    'b4/bin/llama-server',
  ])
  expect(engine.exitCode).toBeNull()
  engine.kill('SIGKILL')
  await once(engine, 'exit')
  offer([])
  expect(await pruneReleases(dataDir, kind, new Set())).toEqual({ deleted: ['b2', 'b1'], running: [] })
  expect(versions()).toEqual(['b4 current', 'b3'])
})

test('no version is deleted that may be in use: the last two, those of the server, and those installed beside', async () => {
  const names = ['b1', 'b2', 'b3', 'b4', 'b5', 'b6']
  const { install, versions } = await setUp(names.map(one => published(one)))
  await install('b1')
  await install('b2', { beside: true })
  await install('b3')
  expect(versions()).toEqual(['b3 current', 'b1', 'b2'])
  await install('b4', {
    served() {
      // An installation takes minutes, in which the models of the server may change.
      expect(versions()[0]).toBe('b4 current')
      return new Set(['b1'])
    },
  })
  expect(versions()).toEqual(['b4 current', 'b1', 'b2', 'b3'])
  expect((await install('b5', { served: () => null })).deleted).toEqual([])
  expect((await install('b6')).deleted.toSorted()).toEqual(['b1', 'b3', 'b4'])
  expect(versions()).toEqual(['b6 current', 'b2', 'b5'])
  await install('b2')
  await install('b5')
  await install('b6')
  expect(versions()).toEqual(['b6 current', 'b5'])
})

test('a version has one build: another one is not put beside it, and replaces it without --beside', async () => {
  const vulkan = llamaArchive('b1', serverProgram('b1', '  Vulkan0: Card (8192 MiB)'))
  const { install, versions, dataDir } = await setUp([
    { tag: 'b1', files: { ...published('b1').files, 'llama-b1-bin-ubuntu-vulkan-x64.tar.gz': vulkan } },
  ])
  const backends = () => installedReleases(dataDir, kind).map(one => one.backend)
  await install('b1')
  await expect(install('b1', { wanted: 'vulkan', beside: true })).rejects.toThrow(
    /b1 is installed for the processor, and a version has one build\. Take another release with --release/,
  )
  expect([versions(), backends()]).toEqual([['b1 current'], ['cpu']])
  await install('b1', { wanted: 'vulkan' })
  expect([versions(), backends()]).toEqual([['b1 current'], ['vulkan']])
})

test('a folder gets its name back if the new one cannot be renamed', async () => {
  const folder = temporaryFolder()
  const [path, aside] = [join(folder, 'b1'), join(folder, '.old')]
  mkdirSync(path)
  await expect(replaceFolder(path, join(folder, 'absent'), aside)).rejects.toThrow('ENOENT')
  expect(readdirSync(folder)).toEqual(['b1'])
  mkdirSync(join(folder, 'new', 'bin'), { recursive: true })
  await replaceFolder(path, join(folder, 'new'), aside)
  expect([readdirSync(folder).toSorted(), readdirSync(path)]).toEqual([['.old', 'b1'], ['bin']])
})

async function running(program: string): Promise<ChildProcess> {
  const child = spawn(program, ['60'], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child
}

test('a version beside the current one changes nothing for other models, and an installed one is only tried again', async () => {
  const { install, versions, server } = await setUp([published('b1'), published('b2')])
  await install('b2')
  expect((await install('b1', { beside: true })).isCurrent).toBe(false)
  expect(versions()).toEqual(['b2 current', 'b1'])
  const downloads = server.requests.length
  await install('b1')
  expect(versions()).toEqual(['b1 current', 'b2'])
  expect(server.requests.slice(downloads).some(({ path }) => path.includes('/download/'))).toBe(false)
})

test('stopped while it unpacks or tries, the next attempt completes it', async () => {
  const { install, versions, folder } = await setUp([published('b1')])
  for (const at of ['Unpacking', 'Trying the program']) {
    const abort = new AbortController()
    const stopped = new Error('stopped')
    const onStep = (step: string) => {
      if (step === at) abort.abort(stopped)
    }
    await expect(install('b1', { signal: abort.signal, onStep })).rejects.toThrow('stopped')
    expect(versions()).toEqual([])
  }
  await install('b1')
  expect([versions(), readdirSync(folder).toSorted()]).toEqual([['b1 current'], ['b1', 'bin']])
})

test.each([
  [403, '{"message":"API rate limit exceeded for 192.0.2.1."}', /too many requests from this network within an hour/],
  [401, '{"message":"Bad credentials"}', /asks for a login, which infer does not send/],
  [200, '<html>', /does not describe a release as GitHub does/],
])('a server that answers %i is explained', async (status, text, said) => {
  const server = await openReleaseServer({}, { refuses: { status, text } })
  onTestFinished(() => server.close())
  const source = { mirror: server.url, hub: hubSettings({}) }
  await expect(findRelease(kind, undefined, source, new AbortController().signal)).rejects.toThrow(said)
  expect(server.requests).toHaveLength(1)
})

test('an engine that infer does not install takes no version', () => {
  const model = Model.parse({ id: 'm', engine: 'tei', source: 'o/n', tasks: ['std/embeddings'], engine_version: 'b1' })
  expect(() => presetOf(model)).toThrow("the engine 'tei' has no setting 'engine_version'")
})

test('programs that infer did not put there are not touched', async () => {
  const { install, folder } = await setUp([published('b1')])
  mkdirSync(join(folder, 'bin'), { recursive: true })
  await expect(install()).rejects.toThrow(/has programs that infer did not install/)
})
