import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { unconfined } from '../../../gpu/sandbox/level.ts'
import { openSandbox } from '../../../gpu/sandbox/sandbox.ts'
import { sandboxWrapper } from '../../../gpu/sandbox/sandbox-wrapper.ts'
import { readSystem } from '../../../gpu/sandbox/system.ts'
import { viewOf } from '../../../gpu/sandbox/view.ts'
import { temporary } from '../launcher/_launch.ts'
import { buildProgram, hasCompiler } from './_program.ts'
import { toolsHere } from './_tools.ts'

/** The files that third-party engines need, each with a fake of it, in the home of an operator. */

const put = (path: string, text: string, mode = 0o644): string => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text, { mode })
  return path
}

function operator() {
  const folder = realpathSync(temporary())
  const home = join(folder, 'operator')
  const dataDir = join(home, '.local', 'share', 'infer')
  mkdirSync(dataDir, { recursive: true })
  put(join(home, '.ssh', 'id_ed25519'), 'private')
  return { folder, home, dataDir }
}

interface Options {
  write?: string[]
  env?: Record<string, string>
  level?: 'files' | 'strict'
  configuredVariables?: string[]
  read?: string[]
  programs?: string[]
}

describe.each(toolsHere)('with $name', tool => {
  /** The output of a command in the sandbox of a model, at the level `files` by default. */
  async function printed(
    { home, dataDir }: { home: string; dataDir: string },
    argv: readonly string[],
    { env = {}, level = 'files', configuredVariables = [], read = [], write = [], programs = [] }: Options = {},
  ): Promise<string> {
    const sandbox = await openSandbox({ dataDir, support: { tool }, host: { HOME: home } })
    const all = { PATH: '/usr/bin:/bin', HOME: join(dataDir, 'home', 'm'), ...env }
    const requirements = { ...unconfined, level, read, write, programs }
    const { wrapper } = (await sandbox.wrapperFor({
      requirements,
      argv,
      env: all,
      configuredVariables,
      write: [all.HOME],
      read: [],
    }))!
    const [file, ...args] = [...wrapper.prefix, ...argv]
    const { stdout, stderr } = spawnSync(file!, args, { env: all, encoding: 'utf8' })
    return `${stdout}${stderr}`.trim()
  }
  const show = (...paths: string[]) => ['/bin/sh', '-c', paths.map(path => `cat '${path}' 2>&1`).join('; '), 'sh']

  test('a virtual environment is visible, with the Python that it is based on, and nothing beside them', async () => {
    const { home, ...rest } = operator()
    // The program is a script whose interpreter is a link to an interpreter elsewhere in the home.
    const base = join(home, '.local/share/uv/python/cpython-3.12')
    put(join(base, 'bin', 'python3.12'), '#!/bin/sh\ncat "$(dirname "$0")/../lib/vllm.py" "$1"\n', 0o755)
    put(join(base, 'lib', 'os.py'), 'os')
    const environment = join(home, 'venv')
    put(join(environment, 'pyvenv.cfg'), `home = ${base}/bin\nversion = 3.12\n`)
    put(join(environment, 'lib', 'vllm.py'), 'library ')
    symlinkSync(join(base, 'bin', 'python3.12'), join(environment, 'bin-python'))
    mkdirSync(join(environment, 'bin'))
    symlinkSync('../bin-python', join(environment, 'bin', 'python'))
    put(join(environment, 'bin', 'vllm'), `#!${join(environment, 'bin', 'python')}\nprogram`, 0o755)
    const program = join(environment, 'bin', 'vllm')
    expect(await printed({ home, ...rest }, [program])).toContain('library')
    expect(await printed({ home, ...rest }, [program])).toContain('program')
    // By its name on the PATH, and through a link, as pipx and uv create it.
    symlinkSync(program, put(join(home, '.local', 'bin', 'x'), '').replace(/x$/, 'vllm'))
    const env = { PATH: `${join(home, '.local', 'bin')}:/usr/bin:/bin` }
    expect(await printed({ home, ...rest }, ['vllm'], { env })).toContain('program')
    const seen = await printed(
      { home, ...rest },
      ['/bin/sh', '-c', `"$1"; cat ${home}/.ssh/id_ed25519; ls -A ${home}`, 'sh', program],
      {
        programs: [program],
      },
    )
    expect(seen).not.toContain('private')
    expect(seen).not.toContain('.ssh\n')
  })

  test.each([
    ['shims/engine', 'shims/x'],
    ['bin/engine', 'pyvenv.cfg'],
    ['bin/engine', 'conda-meta/x'],
  ])('an environment that is a home itself (%s, %s) does not show the files of the home', async (path, mark) => {
    const facts = operator()
    put(join(facts.home, mark), 'home = /usr/bin\n')
    put(join(facts.home, 'lib', 'vllm.py'), 'library')
    const text = `#!/bin/sh\ncat '${facts.home}/.ssh/id_ed25519' '${facts.home}/lib/vllm.py'; echo ended\n`
    const seen = await printed(facts, [put(join(facts.home, path), text, 0o755)])
    expect(seen).not.toContain('private')
    expect(seen).toContain('ended')
    if (path.startsWith('bin/')) expect(seen).toContain('library')
  })

  test.skipIf(!hasCompiler)(
    'a program with its shared libraries, by its own name and through a link in another folder',
    async () => {
      const facts = operator()
      const program = buildProgram(join(facts.home, 'llama'))
      const link = join(facts.home, 'tools', 'server')
      mkdirSync(dirname(link))
      symlinkSync(program, link)
      // Of a home itself only the program and the libraries that it names are visible.
      const inHome = join(facts.home, 'server')
      copyFileSync(program, inHome)
      symlinkSync(join(facts.home, 'llama', 'build', 'libone.so'), join(facts.home, 'libone.so'))
      for (const level of ['files', 'strict'] as const)
        for (const path of [program, link, inHome]) expect(await printed(facts, [path], { level }), path).toBe('linked')
      const env = { PATH: `${dirname(link)}:/usr/bin:/bin` }
      expect(await printed(facts, ['server'], { env })).toBe('linked')
      // An absolute link in a visible folder, as in /usr/local/bin.
      for (const level of ['files', 'strict'] as const)
        expect(await printed(facts, [link], { level, read: [dirname(link)] })).toBe('linked')
      expect(await printed(facts, show(join(facts.home, '.ssh', 'id_ed25519')), { programs: [inHome] })).not.toContain(
        'private',
      )
    },
  )

  test('sources that an environment imports packages from are visible', async () => {
    const facts = operator()
    const [named, mapped, other] = ['named', 'mapped', 'other'].map(name =>
      put(join(facts.folder, 'source', name, 'x.py'), `${name} `),
    ) as [string, string, string]
    const packages = join(facts.home, 'venv', 'lib', 'python3.12', 'site-packages')
    put(join(facts.home, 'venv', 'pyvenv.cfg'), 'home = /usr/bin\n')
    put(join(packages, 'one.pth'), `import site\n${dirname(named)}\n${facts.home}\n${dirname(facts.home)}\n`)
    put(join(packages, '__editable___two_1_0_finder.py'), `MAPPING = {'two': '${dirname(mapped)}'}\n`)
    put(join(packages, 'three.py'), `'${dirname(other)}'`)
    const text = `#!/bin/sh\ncat ${named} ${mapped} ${other} ${facts.home}/.ssh/id_ed25519\n`
    const seen = await printed(facts, [put(join(facts.home, 'venv', 'bin', 'engine'), text, 0o755)])
    expect(seen).toContain('named mapped')
    expect(seen).not.toMatch(/other |private/)
    // What the engine itself may have written down shows it nothing.
    const write = [join(facts.home, 'venv')]
    expect(await printed(facts, [join(write[0]!, 'bin', 'engine')], { write })).not.toMatch(/named |mapped /)
  })

  test('links of a model folder lead to other disks, and not into homes', async () => {
    const facts = operator()
    const models = join(facts.folder, 'models')
    const weights = put(join(facts.folder, 'disk', 'x.safetensors'), 'weights')
    mkdirSync(models)
    symlinkSync(weights, join(models, 'x.safetensors'))
    symlinkSync(facts.home, join(models, 'home'))
    const seen = await printed(facts, show(join(models, 'x.safetensors'), join(models, 'home/.ssh/id_ed25519')), {
      read: [models],
    })
    expect(seen).toMatch(/^weights/)
    expect(seen).not.toContain('private')
    // A link that the engine itself may have made leads nowhere.
    const own = await printed(facts, show(join(models, 'x.safetensors')), { read: [models], write: [models] })
    expect(own).not.toContain('weights')
    const named = await printed(facts, show(join(models, 'x.safetensors')), { write: [models] })
    expect(named).not.toContain('weights')
    const listed = { read: [join(models, 'x.safetensors')], write: [models] }
    expect(await printed(facts, show(join(models, 'x.safetensors')), listed)).not.toContain('weights')
  })

  test('a script that the command names is visible, with the files beside it', async () => {
    const facts = operator()
    const script = put(join(facts.home, 'engine', 'serve.sh'), '. "$(dirname "$0")/beside.sh"\n')
    put(join(facts.home, 'engine', 'beside.sh'), 'echo both\n')
    expect(await printed(facts, ['/bin/sh', script])).toBe('both')
    const config = put(join(facts.home, 'engine.conf'), 'configured')
    expect(
      await printed(facts, ['/bin/sh', '-c', 'cat "${1#*=}"; ls -A "$2"', 'sh', `--config=${config}`, facts.home]),
    ).toMatch(/^configured/)
  })

  test('the cache of models is visible, without the token of the hub', async () => {
    const facts = operator()
    const hub = join(facts.home, '.cache', 'huggingface')
    put(join(hub, 'hub', 'models--a--b', 'blobs', 'x'), 'weights')
    mkdirSync(join(hub, 'hub', 'models--a--b', 'snapshots', 'r'), { recursive: true })
    const model = join(hub, 'hub', 'models--a--b', 'snapshots', 'r', 'model.safetensors')
    symlinkSync('../../blobs/x', model)
    put(join(hub, 'token'), 'private')
    const seen = await printed(facts, [...show(model, join(hub, 'token')), 'x'], { env: { HF_HOME: hub } })
    expect(seen).toMatch(/^weights/)
    expect(seen).not.toContain('private')
  })

  test('CUDA and other libraries that the environment names are visible', async () => {
    const facts = operator()
    const library = put(join(facts.home, 'cuda', 'lib64', 'libcudart.so'), 'library')
    const shown = show(library)
    expect(await printed(facts, shown)).not.toMatch(/^library/)
    for (const level of ['strict', 'files'] as const) {
      const env = { LD_LIBRARY_PATH: `/nowhere:${dirname(library)}` }
      expect(await printed(facts, shown, { level, env })).toBe('library')
      expect(await printed(facts, shown, { level, env: { CUDA_HOME: join(facts.home, 'cuda') } })).toBe('library')
    }
    const caches = { CUDA_CACHE_PATH: join(facts.dataDir, 'cuda'), MESA_SHADER_CACHE_DIR: join(facts.dataDir, 'mesa') }
    const env = { MINE: dirname(library), ...caches }
    expect(await printed(facts, shown, { env })).not.toMatch(/^library/)
    expect(await printed(facts, shown, { env, configuredVariables: ['MINE'] })).toBe('library')
    for (const cache of Object.values(caches)) {
      const kept = join(cache, 'kernel')
      expect(await printed(facts, ['/bin/sh', '-c', `echo kernel >${kept}`], { env, level: 'strict' })).toBe('')
      expect(await printed(facts, show(kept), { env, level: 'strict' })).toBe('kernel')
    }
  })

  test('a model behind links, in several files, in the data directory is visible', async () => {
    const facts = operator()
    const first = put(join(facts.folder, 'disk', 'big-00001-of-00002.gguf'), 'one')
    put(join(facts.folder, 'disk', 'big-00002-of-00002.gguf'), 'two')
    symlinkSync(join(facts.folder, 'disk'), join(facts.folder, 'models'))
    const name = join(facts.folder, 'models', 'big-00001-of-00002.gguf')
    const both = show(name, name.replace('00001-', '00002-'))
    expect(await printed(facts, both, { level: 'strict', read: [name, name.replace('00001-', '00002-')] })).toBe(
      'onetwo',
    )
    expect(await printed(facts, show(first), { level: 'strict', read: [name] })).toBe('one')
    const own = put(join(facts.dataDir, 'models', 'own.gguf'), 'own')
    put(join(facts.dataDir, 'infer.db'), 'private')
    const seen = await printed(facts, show(own, join(facts.dataDir, 'infer.db')), { level: 'strict', read: [own] })
    expect(seen).toMatch(/^own/)
    expect(seen).not.toContain('private')
  })

  test('a configured folder is writable through a link in a visible folder', async () => {
    const facts = operator()
    const disk = join(facts.folder, 'disk', 'cache')
    mkdirSync(disk, { recursive: true })
    mkdirSync(join(facts.home, 'engine'))
    const link = join(facts.home, 'engine', 'cache')
    symlinkSync(disk, link)
    const write = ['/bin/sh', '-c', `echo kept >'${link}/x'; echo no >'${facts.home}/engine/y'`]
    expect(await printed(facts, write, { read: [join(facts.home, 'engine')], write: [link] })).toMatch(
      /Read-only file system/,
    )
    expect(readFileSync(join(disk, 'x'), 'utf8')).toBe('kept\n')
  })

  test('GPUs: files in /dev are devices there', async () => {
    const dev = temporary()
    mkdirSync(join(dev, 'dri'))
    for (const name of ['nvidia0', 'nvidiactl', 'nvidia-uvm', 'dri/renderD128', 'kfd', 'sda'])
      symlinkSync(name === 'sda' ? '/dev/null' : '/dev/zero', join(dev, name))
    const system = await readSystem({ dev, devices: ['nvidia', 'kfd', 'dri'] })
    const mounts = viewOf({
      ownProc: tool.ownProc,
      system,
      secret: [],
      homes: [],
      read: [],
      write: [],
    })
    const { prefix } = sandboxWrapper(tool, mounts, { network: false, root: realpathSync(temporary()) })
    const script =
      'for f in nvidia0 nvidiactl nvidia-uvm kfd; do head -c 3 /dev/$f | wc -c; done; ls -d /dev/dri /dev/shm; ls /dev/sda'
    const { stdout, stderr } = spawnSync(prefix[0]!, [...prefix.slice(1), '/bin/sh', '-c', script], {
      encoding: 'utf8',
    })
    expect(stderr).toMatch(/\/dev\/sda.*No such file/)
    expect(stdout).toBe('3\n3\n3\n3\n/dev/dri\n/dev/shm\n')
  })
})
