import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { environmentKinds } from '../../../cli/engines/environment-kinds.ts'
import { installedEnvironments, pruneEnvironments, versionsOf } from '../../../cli/engines/installed-environments.ts'
import { addedByUser, changesBetween } from '../../../cli/engines/installed-packages.ts'
import { processesBelow } from '../../../cli/engines/running-programs.ts'
import { changesText } from '../../../cli/engines/update-environment.ts'
import { Model } from '../../../core/models/model.ts'
import { enginePath } from '../../../gpu/launcher/environment.ts'
import { presetOf } from '../../../gpu/presets/presets.ts'
import { findProgram } from '../../../gpu/sandbox/program.ts'
import { installUv } from '../../fixtures/uv.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'

const kind = environmentKinds.vllm

function setUp() {
  const folder = temporaryFolder()
  const dataDir = join(folder, 'data')
  const programs = join(folder, 'programs')
  installUv(programs)
  const versions = join(dataDir, 'engines/vllm')
  const PATH = `${programs}:${process.env.PATH}`
  const engine = (...args: string[]) => infer(['engine', ...args, '--data-dir', dataDir], { env: { PATH } })
  const fault = (name: string) => writeFileSync(join(programs, 'faults', name), '')
  const repair = () =>
    execFileSync('rm', ['-rf', ...readdirSync(join(programs, 'faults'))], { cwd: join(programs, 'faults') })
  const calls = () => readFileSync(join(programs, 'calls'), 'utf8').trim().split('\n')
  const shown = () =>
    installedEnvironments(dataDir, kind).map(one => `${one.version}${one.isCurrent ? ' current' : ''}`)
  /** What models without and with a version start, below the folder of all versions. */
  const programOf = (engine_version?: string) => {
    const model = Model.parse({ id: 'm', engine: 'vllm', source: 'o/n', engine_version })
    const preset = presetOf(model)
    const facts = { slots: 1, threads: 1, gpus: 1, memoryShare: 1, freeShare: 1, bytes: 0, backend: null }
    const path = enginePath(dataDir, '/nowhere', preset.environments!(model))
    return findProgram(preset.command(model, facts)[0]!, path)?.replace(`${versions}/`, '')
  }
  /** An environment as infer made it before there were versions. */
  function makeOld(): void {
    mkdirSync(versions, { recursive: true })
    const list = join(versions, 'infer-requirements.txt')
    execFileSync('python3', ['-m', 'venv', '--without-pip', versions])
    writeFileSync(list, 'torch==2.0.0\nvllm==0.30.0\n')
    execFileSync(join(programs, 'uv'), ['pip', 'install', '--python', join(versions, 'bin/python'), '-r', list])
    writeFileSync(join(versions, 'infer-setup.json'), JSON.stringify({ requirements: 'old', torch: '' }))
  }
  return { dataDir, versions, engine, fault, repair, calls, shown, programOf, makeOld }
}

async function serving(program: string) {
  const child: ChildProcess = spawn(program, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface({ input: child.stdout! })
  const [ready] = (await once(lines, 'line')) as [string]
  expect(ready).toBe('ready')
  return {
    /** The version of a library that it loads now. */
    async later() {
      child.stdin!.end('\n')
      const [[version]] = (await Promise.all([once(lines, 'line'), once(child, 'exit')])) as [[string], unknown]
      return version
    },
  }
}

test('an update is made beside what serves, tried, put into use and taken back; one of the old layout is taken over', async () => {
  const { dataDir, versions, engine, fault, repair, shown, programOf, makeOld } = setUp()
  expect((await engine('update', 'vllm')).stderr).toContain('Install it with: infer engine setup vllm')
  makeOld()
  const [old] = shown()[0]!.split(' ')
  expect([shown(), programOf()]).toEqual([[`${old} current`], 'bin/vllm'])
  expect(old).toMatch(/^0\.30\.0-[0-9a-f]{8}$/)
  expect((await engine('list')).stdout).toMatch(
    /vllm +0\.30\.0-\w+ \(torch 2\.0\.0, vllm 0\.30\.0\) +current, outdated/,
  )
  const check = await engine('update', 'vllm', '--check')
  expect(check.stdout).toMatch(
    /^Changes of vllm: vllm 0\.30\.0 → 0\.\d+\.\d+, torch 2\.0\.0 → \S+, .* and \d+ more\. Install it with: infer engine update vllm\n$/,
  )
  expect((await engine('update', 'vllm')).stderr).toContain('Add --yes to confirm.')

  const server = await serving(join(versions, 'bin/vllm'))
  const idle = await serving(join(versions, 'bin/vllm'))
  fault('vllm')
  const failed = await engine('update', 'vllm', '--yes')
  expect([failed.exitCode, failed.stderr]).toEqual([65, expect.stringContaining(`Models keep using ${old}.`)])
  expect(programOf()).toBe('bin/vllm')

  repair()
  const updated = await engine('update', 'vllm', '--yes', '--json')
  const { before, version: latest, path, is_current } = json(updated) as Record<string, string>
  expect([before, path, is_current]).toEqual([old, join(versions, latest!), true])
  expect([programOf(), programOf(old), programOf(latest)]).toEqual([
    `${latest}/bin/vllm`,
    `bin/vllm-${old}`,
    `${latest}/bin/vllm-${latest}`,
  ])
  expect(programOf('0.1-01234567')).toBeUndefined()
  expect(await server.later()).toBe('0.30.0')
  expect(await (await serving(join(versions, latest!, `bin/vllm-${latest}`))).later()).toMatch(latest!.split('-')[0]!)
  expect((await engine('update', 'vllm')).stdout).toMatch(/^All of vllm \S+ is current/)

  const marker = join(versions, 'infer-setup.json')
  writeFileSync(marker, JSON.stringify({ ...JSON.parse(readFileSync(marker, 'utf8')), beside: true }))
  const back = await engine('setup', 'vllm', '--release', old!)
  expect(readFileSync(marker, 'utf8')).not.toContain('beside')
  expect([back.exitCode, programOf(), shown()]).toEqual([0, 'bin/vllm', [`${old} current`, latest]])
  const unknown = await engine('setup', 'vllm', '--release', '9-01234567')
  expect(unknown.stderr).toContain(`vllm 9-01234567 is not installed. Installed: ${old}, ${latest}.`)
  expect((await engine('remove', 'vllm', old!, '--yes')).stderr).toContain('is the current version of vllm')
  await engine('update', 'vllm', '--yes')
  expect(shown()).toEqual([`${latest} current`, old])
  expect((await engine('remove', 'vllm', old!, '--yes')).stderr).toContain(`Engines run from ${old} of vllm.`)
  await idle.later()
  expect((await engine('remove', 'vllm', old!, '--yes')).stdout).toMatch(
    /^Deleted the environment 'vllm' 0\.30\.0-\w+: \d/,
  )
  expect(readdirSync(versions).toSorted()).toEqual([latest, 'current'])
  expect([programOf(), existsSync(join(dataDir, 'engines/vllm/bin'))]).toEqual([`${latest}/bin/vllm`, false])
})

test('a version in use whose check fails stays in use, with the worker that it has', async () => {
  const { dataDir, engine } = setUp()
  expect((await engine('setup', 'python')).exitCode).toBe(0)
  const [{ path, version } = { path: '', version: '' }] = installedEnvironments(dataDir, environmentKinds.python)
  const worker = join(path, 'bin/infer-worker')
  writeFileSync(worker, 'of the infer before')
  const libraries = join(path, 'lib', readdirSync(join(path, 'lib'))[0]!, 'site-packages')
  writeFileSync(join(libraries, environmentKinds.python.modules[0], '__init__.py'), 'import absent')
  const failed = await engine('setup', 'python')
  expect(failed.stderr).toContain(`Models keep using this version, ${version}, so their next load may fail.`)
  expect(readFileSync(worker, 'utf8')).toBe('of the infer before')
})

test('engines run from the first environment of their PATH', async () => {
  const { dataDir } = setUp()
  const [speech, python] = ['speech', 'python'].map(name => join(dataDir, 'engines', name))
  for (const folder of [speech!, python!]) mkdirSync(join(folder, 'bin'), { recursive: true })
  const env = { PATH: `${dataDir}/engines/absent/bin:${speech}/bin:${python}/bin:${process.env.PATH}` }
  const child = spawn('sleep', ['60'], { env })
  onTestFinished(() => void child.kill('SIGKILL'))
  await once(child, 'spawn')
  expect([processesBelow(speech!), processesBelow(python!)]).toEqual([[child.pid], []])
})

test('an interrupted installation is continued; that of another version is cleaned', async () => {
  const { versions, engine, fault, repair, calls, shown } = setUp()
  const other = join(versions, '0.1-01234567')
  mkdirSync(join(other, 'bin'), { recursive: true })
  writeFileSync(join(other, 'infer-requirements.txt'), '')
  mkdirSync(join(versions, '0.2-01234567'))
  fault('stop-torch')
  const { stderr, exitCode } = await engine('setup', 'vllm')
  expect([exitCode, stderr]).toEqual([65, expect.stringContaining('it continues')])
  expect((await engine('list')).stdout).toMatch(/vllm +\S+ \(torch \S+\) +incomplete/)
  repair()
  const done = await engine('setup', 'vllm')
  expect(done.stdout).toContain('Deleted what nothing uses any more: 0.1-01234567.')
  expect(calls()).toEqual(['venv', 'pip', 'pip'])
  // A folder that no setup has begun may be the user's.
  expect(shown()).toEqual([`${readlinkSync(join(versions, 'current'))} current`, '0.2-01234567'])
  const again = await engine('setup', 'vllm', '--beside')
  expect([again.exitCode, calls()]).toEqual([0, ['venv', 'pip', 'pip']])
})

test('versions stay that are current, the newest of the others, named by a model, or installed beside', async () => {
  const { dataDir, versions, shown } = setUp()
  const names = ['1', '2', '3', '4', '5'].map(name => `${name}-01234567`)
  for (const [at, name] of names.entries()) {
    mkdirSync(join(versions, name), { recursive: true })
    const marker = join(versions, name, 'infer-setup.json')
    writeFileSync(marker, JSON.stringify({ requirements: '', torch: '', ...(at === 1 && { beside: true }) }))
    utimesSync(marker, at, at)
  }
  execFileSync('ln', ['-s', names[4]!, join(versions, 'current')])
  const prune = (pinned: ReadonlySet<string> | null) => pruneEnvironments(dataDir, kind, { version: names[4]!, pinned })
  expect((await prune(null)).deleted).toEqual([])
  expect((await prune(new Set([names[0]!]))).deleted).toEqual([names[2]])
  expect((await prune(new Set())).deleted).toEqual([names[0]])
  expect(shown()).toEqual([`${names[4]} current`, names[1], names[3]])
})

test('a model names a version by engine_version or by its path', () => {
  const versions = (fields: object, { name } = environmentKinds.python as { name: 'python' | 'speech' }) =>
    versionsOf(Model.parse({ id: 'm', engine: 'python', source: '/m', ...fields }), { name })
  expect(versions({ tasks: ['slug/text-to-image'], engine_version: '1-ab' })).toEqual(['1-ab'])
  expect(versions({ tasks: ['slug/text-to-image'], environment: '/data/engines/python/1-ab' })).toEqual(['1-ab'])
  expect(versions({ tasks: ['slug/text-to-image'] })).toEqual([])
  expect(versions({ tasks: ['std/audio-speech'], engine_version: '1-ab' }, { name: 'speech' })).toEqual(['1-ab'])
})

test('what changes is named with the engine first, and what the user has added is found', () => {
  const list = ['torch==2.1.0', "nvidia-cuda==1 ; sys_platform == 'linux'", 'vllm==2.0', 'av==3'].join(
    ' \\\n    --hash=sha256:0\n',
  )
  const installed = new Map([
    ['torch', '2.0.0+cu128'],
    ['vllm', '1.0'],
    ['av', '3'],
    ['sageattention', '1.0.6'],
    ['nvidia-cudnn', '9'],
    ['pip', '24'],
  ])
  const changes = changesBetween(installed, list, { ownTorch: true })
  expect(changes).toEqual([
    { library: 'vllm', from: '1.0', to: '2.0' },
    { library: 'torch', from: '2.0.0', to: '2.1.0' },
  ])
  expect(changesText(kind, changes, 'cu128')).toBe(
    'Changes of vllm: vllm 1.0 → 2.0, torch 2.0.0 → 2.1.0. The build of PyTorch stays cu128.',
  )
  expect(changesText(kind, [], '')).toBe('The list of libraries of vllm has changed, and no version.')
  expect(addedByUser(installed, list)).toEqual(['sageattention==1.0.6'])
})
