import { existsSync, mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { lackingIn, startFault } from '../../../cli/engines/comfyui-program.ts'
import { gitFailure } from '../../../cli/engines/git-commit.ts'
import { Model } from '../../../core/models/model.ts'
import { comfyui } from '../../../gpu/presets/comfyui.ts'
import { sandboxRequirementsOf } from '../../../gpu/presets/sandbox-requirements.ts'
import { noWrapper } from '../../../gpu/sandbox/wrapper.ts'
import { launcherIn, launchOptions } from '../../gpu/launcher/_launch.ts'
import { toolsHere } from '../../gpu/sandbox/_tools.ts'
import { infer, json, temporaryFolder } from '../_infer.ts'
import { makePrograms, makeRepository } from './_comfyui-source.ts'

const graph = {
  3: { class_type: 'KSampler', inputs: { seed: 1, steps: 20, positive: ['6', 0], negative: ['7', 0] } },
  6: { class_type: 'CLIPTextEncode', inputs: { text: 'a cat' } },
  7: { class_type: 'CLIPTextEncode', inputs: { text: 'ugly' } },
  9: { class_type: 'SaveImage', inputs: { filename_prefix: 'ComfyUI', images: ['3', 0] } },
}

function setUp() {
  const folder = temporaryFolder()
  const dataDir = join(folder, 'data')
  const repository = makeRepository(join(folder, 'repository'))
  const requirements = join(folder, 'requirements.txt')
  writeFileSync(requirements, '')
  const PATH = `${makePrograms(join(folder, 'programs'))}:${process.env.PATH}`
  const run = (args: string[], path = PATH) => infer([...args, '--data-dir', dataDir], { env: { PATH: path } })
  const install = (commit: string, more: string[] = [], path = PATH) =>
    run(
      ['engine', 'setup', 'comfyui', '--from', repository.address, '--commit', commit]
        .concat('--requirements', requirements)
        .concat(more),
      path,
    )
  return { folder, dataDir, repository, run, install }
}

test('ComfyUI is shown, installed from a commit, tried, found by a model, listed and removed', async () => {
  const { folder, dataDir, repository, run, install } = setUp()
  const first = repository.commit('0.33.0', 'pass')
  const workflow = join(folder, 'cats.json')
  writeFileSync(workflow, JSON.stringify(graph))
  const add = ['model', 'add', `comfyui:${workflow}`, '--yes']
  expect((await run([...add, '--dry-run'])).stderr).toContain('Install it with: infer engine setup comfyui')

  const { exitCode, stdout, stderr } = await install(first)
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining('ComfyUI 0.33.0 is installed.')])
  expect(stdout).toMatch(new RegExp(`^ComfyUI \\(GPL-3\\.0\\), commit ${first} of ${repository.address}\n`))
  expect(stderr).toContain('Starting ComfyUI for a trial')
  const environment = join(dataDir, 'engines/comfyui')
  expect(existsSync(join(environment, 'current/libexec', `ComfyUI-${first.slice(0, 12)}`, '.git'))).toBe(false)
  const current = () => readlinkSync(join(environment, 'current'))
  expect(current()).toMatch(new RegExp(`^${first.slice(0, 12)}-[0-9a-f]{8}$`))
  const before = current()

  // A version that does not start leaves the installed one in use.
  const broken = repository.commit('0.34.0', 'import torchwhatever')
  const failed = await install(broken)
  expect([failed.exitCode, failed.stderr]).toEqual([
    1,
    expect.stringContaining(
      'ComfyUI 0.34.0 does not work in the environment: it needs the Python module torchwhatever',
    ),
  ])
  expect(failed.stderr).toContain(`Models keep using ${before}.`)
  expect(current()).toBe(before)
  expect(existsSync(join(dataDir, '.comfyui-source'))).toBe(false)
  const { stdout: listed } = await run(['engine', 'list'])
  expect(listed).toMatch(/\ncomfyui +\S+ \(comfyui 0\.33\.0\) +current +\S+ \S+ +\//)
  expect(listed).toMatch(/\ncomfyui +\/.*\/engines\/comfyui\/current\/bin\/infer-comfyui\n/)

  // One with nodes that cannot be loaded is installed with a warning.
  const lacking = repository.commit('0.35.0', 'print("IMPORT FAILED: nodes_audio.py", flush=True)')
  const warned = await install(lacking, ['--json'])
  expect(json(warned)).toMatchObject({
    environment: { name: 'comfyui', path: expect.stringContaining(`${environment}/`), is_current: true },
    version: '0.35.0',
    commit: lacking,
    warnings: ['ComfyUI 0.35.0 starts, and could not load the nodes nodes_audio.py. Graphs with them will fail.'],
  })

  const added = await run(add)
  expect(added.exitCode).toBe(0)
  expect(readFileSync(join(dataDir, 'infer.yaml'), 'utf8')).toMatch(/engine: comfyui\n {4}source: /)
  const used = await run(['engine', 'remove', 'comfyui', '--yes'])
  expect(used.stderr).toContain("'cats' in infer.yaml uses the environment 'comfyui'.")
  expect((await run(['model', 'remove', 'cats', '--yes'])).exitCode).toBe(0)
  const removed = await run(['engine', 'remove', 'comfyui', '--yes'])
  expect(removed.stderr).toContain(`Its models and custom nodes are kept in ${join(dataDir, 'comfyui')}.`)
  expect([existsSync(environment), existsSync(join(dataDir, 'comfyui/models/checkpoints'))]).toEqual([false, true])
})

test.skipIf(toolsHere.length === 0)(
  'the trial of ComfyUI runs in the sandbox of engines: it sees neither the data directory nor the files of the user',
  async () => {
    const { folder, dataDir, repository, install } = setUp()
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'root-token'), 'secret')
    const writes = `open('${join(folder, 'requirements.txt')}', 'w').write('x')`
    const reads = `open('${join(dataDir, 'root-token')}').read()`
    const { stderr } = await install(repository.commit('0.33.0', `${writes}; ${reads}`))
    expect(stderr).toMatch(
      /ComfyUI 0\.33\.0 does not work in the environment: .*No such file or directory: '.*root-token'/,
    )
    expect(readFileSync(join(folder, 'requirements.txt'), 'utf8')).toBe('')
  },
)

test('an engine runs the installed ComfyUI in a sandbox and sees its models', async () => {
  const { dataDir, repository, install } = setUp()
  expect((await install(repository.commit('0.33.0', 'pass'))).exitCode).toBe(0)
  writeFileSync(join(dataDir, 'comfyui/models/checkpoints/cats.safetensors'), '')
  const model = Model.parse({ id: 'cats', engine: 'comfyui', tasks: ['slug/text-to-image'] })
  const facts = { slots: 1, threads: 1, gpus: 0, memoryShare: 1, freeShare: 1, bytes: 0, backend: null }
  expect(toolsHere).not.toEqual([])
  for (const tool of toolsHere) {
    const launcher = await launcherIn(dataDir, noWrapper, `boot-${tool.name}`, { tool })
    const { endpoint, exited } = await launcher.start(
      launchOptions(`launch-${tool.name}`, [], {
        channel: 'port',
        argv: comfyui.command(model, facts),
        environments: comfyui.environments!(model),
        sandbox: { ...sandboxRequirementsOf(model, comfyui, facts), devices: [] },
      }),
    )
    const early = exited.then(exit => Promise.reject(new Error(JSON.stringify(exit))))
    const answer = async () => (await fetch(`${endpoint()!.origin}/system_stats`).catch(() => null))?.json()
    const expected = { system: { checkpoints: ['cats.safetensors'], cpu: true } }
    await Promise.race([early, expect.poll(answer).toEqual(expected)])
    early.catch(() => {})
  }
})

test('without git, without the commit and without a repository the message says what to do', async () => {
  const { folder, dataDir, repository, run, install } = setUp()
  repository.commit('0.33.0', 'pass')
  const unknown = '0123456789abcdef0123456789abcdef01234567'
  const without = await install(unknown, [], makePrograms(join(folder, 'without git'), ['flock', 'sh']))
  expect(without.stderr).toMatch(/git is not installed.*sudo apt install git/)
  const missing = await install(unknown)
  expect(missing.stderr).toContain(`The repository ${repository.address} has no commit ${unknown}`)
  mkdirSync(join(folder, 'no repository'))
  const nowhere = await run(['engine', 'setup', 'comfyui', '--from', join(folder, 'no repository')])
  expect(nowhere.stderr).toMatch(/There is no Git repository at .*no repository/)
  expect(existsSync(join(dataDir, 'engines/comfyui'))).toBe(false)
  expect((await run(['engine', 'setup', 'comfyui', '--commit', 'v0.33.0'])).exitCode).toBe(64)
})

test('failures of git and of ComfyUI are explained by their output', () => {
  const git = (output: string) =>
    gitFailure({ from: 'https://me:secret@git.example.com/c', commit: 'abc', output, how: 'with exit code 128' })
      .message
  const offline = git("fatal: unable to access 'https://git.example.com/c/': Could not resolve host: git.example.com")
  expect(offline).toMatch(/^The repository https:\/\/git\.example\.com\/c cannot be reached\..*HTTPS_PROXY.*--from/)
  expect(git('fatal: bad object')).toMatch(/^git ended with exit code 128/)
  const ended = (stdout: string, signal?: NodeJS.Signals) =>
    startFault({ exitCode: signal ? undefined : 1, signal, timedOut: false, stdout, stderr: '' })
  expect(ended('main.py: error: unrecognized arguments: --database-url x\n')).toMatch(/ComfyUI 0\.3\.50 or later/)
  expect(ended("No module named 'sage'\nModuleNotFoundError: No module named 'av'\n")).toContain(
    'the Python module av,',
  )
  expect(ended('', 'SIGILL')).toMatch(/instructions that this one lacks/)
  expect(ended('out of order\n')).toBe('it ended with exit code 1: out of order')
  expect(lackingIn('ComfyUI', "No module named 'optional'\n")).toEqual([])
  expect(lackingIn('ComfyUI', "No module named 'av'\nIMPORT FAILED: nodes_video.py\n")[0]).toMatch(
    /nodes_video\.py\. Missing Python modules: av\./,
  )
})
