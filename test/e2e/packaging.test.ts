import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'

const executable = resolve('build/infer')
const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string }

beforeAll(() => {
  if (!existsSync(executable)) throw new Error('build/infer is missing. Run: npm run pack')
})

// A machine with only the executable: no PATH, an empty home.
let home: string
let children: ChildProcess[]
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'infer-packaging-'))
  children = []
})
afterEach(async () => {
  const alive = () => children.filter(child => child.exitCode === null && child.signalCode === null)
  for (const child of alive()) child.kill('SIGKILL')
  for (let child = alive()[0]; child; child = alive()[0]) await once(child, 'exit')
  rmSync(home, { recursive: true, force: true })
})

function start(args: string[], env: Record<string, string> = {}): ChildProcess {
  const child = spawn(executable, args, { cwd: home, env: { PATH: '/nonexistent', HOME: home, ...env } })
  children.push(child)
  return child
}

async function run(args: string[], env?: Record<string, string>) {
  const child = start(args, env)
  const [out, err, [code]] = await Promise.all([text(child.stdout!), text(child.stderr!), once(child, 'close')])
  return { out, err, code: code as number | null }
}

/** The cache folder of this build's extracted files. */
function extracted(cache = join(home, '.cache/infer')): string {
  // The doctor's findings about this machine lie beside the builds.
  const builds = readdirSync(cache).filter(name => !name.endsWith('.json'))
  expect(builds).toEqual([expect.stringMatching(new RegExp(`^${manifest.version}-[0-9a-f]{16}$`))])
  return join(cache, builds[0]!)
}

const createOrganization = (name: string, env?: Record<string, string>) => run(['org', 'create', name], env)

/** Starts the built-in engine with a model that ships with the executable; resolves with its pid when it answers. */
async function startEngine(name: string, env?: Record<string, string>): Promise<ChildProcess> {
  const socketPath = join(home, `${name}.sock`)
  const child = start(
    [
      'engine',
      'gguf',
      '--model',
      resolve('dist/assets/models/tiny-chat.gguf'),
      '--id',
      'tiny',
      '--threads',
      '1',
    ].concat(['--gpu', 'off', '--socket', socketPath]),
    env,
  )
  const said: string[] = []
  for await (const line of createInterface(child.stderr!)) {
    said.push(line)
    if (line.includes('The engine is ready')) {
      child.stderr!.resume()
      return child
    }
  }
  throw new Error(`The engine ended before it was ready: ${said.join('\n')}`)
}

const ask = (socketPath: string, path: string) =>
  new Promise<number | undefined>((answered, failed) => {
    request({ socketPath, path }, response => {
      response.resume()
      answered(response.statusCode)
    })
      .on('error', failed)
      .end()
  })

async function stop(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit')
  child.kill('SIGTERM')
  await exit
}

test('it prints its version without extracting files', async () => {
  expect(await run(['--version'])).toEqual({ out: `${manifest.version}\n`, err: '', code: 0 })
  expect(readdirSync(home)).toEqual([])
})

describe('the SQLite addon', () => {
  test('is extracted for its owner only, and replaced when it was changed', async () => {
    expect(await createOrganization('one')).toMatchObject({ code: 0 })
    const addon = join(extracted(), 'assets/native/better_sqlite3.node')
    const original = readFileSync(resolve('dist/assets/native/better_sqlite3.node'))
    expect(original.equals(readFileSync(addon))).toBe(true)
    expect([statSync(extracted()).mode & 0o777, statSync(addon).mode & 0o777]).toEqual([0o700, 0o600])

    const changed = Buffer.from(original)
    changed.fill(0xcc, 4096)
    writeFileSync(addon, changed)
    expect(await createOrganization('two')).toMatchObject({ code: 0 })
    expect(original.equals(readFileSync(addon))).toBe(true)
  })

  test('can be extracted by six first starts at once', async () => {
    const starts = Array.from({ length: 6 }, (_, at) =>
      createOrganization('same', { INFER_DATA_DIR: join(home, `data-${at}`) }),
    )
    for (const ended of await Promise.all(starts)) expect(ended).toMatchObject({ code: 0 })
    expect(readdirSync(join(extracted(), 'assets/native'))).toEqual(['better_sqlite3.node'])
  })
})

describe('the engine', () => {
  test('runs from extracted files, which are replaced when they were changed', async () => {
    const first = await startEngine('first')
    expect(await ask(join(home, 'first.sock'), '/health')).toBe(200)
    await stop(first)

    const library = join(extracted(), 'vendor/node_modules/node-llama-cpp/dist')
    const original = readFileSync(join(library, 'index.js'))
    const intruder = `import('node:fs').then(fs => fs.writeFileSync(${JSON.stringify(join(home, 'intruded'))}, ''))\n`
    appendFileSync(join(library, 'index.js'), `;${intruder}`)
    mkdirSync(join(library, 'node_modules/@node-llama-cpp/linux-x64'), { recursive: true })
    writeFileSync(join(library, 'node_modules/@node-llama-cpp/linux-x64/index.js'), intruder)
    await stop(await startEngine('second'))

    expect(existsSync(join(home, 'intruded'))).toBe(false)
    expect(original.equals(readFileSync(join(library, 'index.js')))).toBe(true)
    expect(readdirSync(library).sort()).toEqual(['bindings', 'index.js'])
  })

  test('can be extracted by six first starts at once', async () => {
    const engines = await Promise.all(Array.from({ length: 6 }, (_, at) => startEngine(`engine-${at}`)))
    for (const at of engines.keys()) expect(await ask(join(home, `engine-${at}.sock`), '/health')).toBe(200)
    expect(readdirSync(extracted())).toEqual(['vendor'])
  })
})

describe('images', () => {
  /** The doctor's finding about decoding an image in a thread. */
  async function readPicture(): Promise<unknown> {
    const { out } = await run(['doctor', '--json'])
    const { findings } = JSON.parse(out) as { findings: { name: string; state: string; detail: string }[] }
    return findings.find(({ name }) => name === 'images')
  }
  const fine = { name: 'images', state: 'fine', detail: 'JPEG, PNG, WebP, GIF and AVIF can be read' }

  test('are decoded in a thread by extracted libraries, which are replaced when they were changed', async () => {
    expect(await readPicture()).toMatchObject(fine)
    const packages = join(extracted(), 'vendor-sharp/node_modules')
    expect(readdirSync(packages).sort()).toEqual(['@img', 'sharp'])
    const folder = join(packages, '@img/sharp-libvips-linux-x64/lib')
    const library = join(folder, readdirSync(folder).find(name => name.startsWith('libvips'))!)
    const original = readFileSync(library)

    writeFileSync(library, Buffer.from(original).fill(0xcc, 4096))
    writeFileSync(join(packages, 'sharp/dist/intruder.js'), '')
    expect(await readPicture()).toMatchObject(fine)
    expect(original.equals(readFileSync(library))).toBe(true)
    expect(readdirSync(join(packages, 'sharp/dist'))).toEqual(['index.cjs'])
  })
})

describe('an unusable cache directory ends the start with one sentence', () => {
  test.each<[string, () => string]>([
    ['nothing can be created there', () => '/proc/infer/cache'],
    [
      'a file is in the way',
      () => {
        writeFileSync(join(home, 'file'), '')
        return join(home, 'file/cache')
      },
    ],
    ['it is relative', () => 'cache'],
  ])('%s', async (_, prepare) => {
    const { err, code } = await createOrganization('one', { INFER_CACHE_DIR: prepare() })
    expect(code).toBeGreaterThan(0)
    expect(err.trimEnd().split('\n')).toEqual([expect.stringMatching(/INFER_CACHE_DIR/)])
  })

  test('others can write to it', async () => {
    await createOrganization('one')
    chmodSync(extracted(), 0o777)
    const { err, code } = await createOrganization('two')
    expect(code).toBeGreaterThan(0)
    expect(err.trimEnd().split('\n')).toEqual([expect.stringMatching(/others can write to .*INFER_CACHE_DIR/)])
  })
})

describe('nothing from outside can inject code into it', () => {
  const script = () => {
    const path = join(home, 'script.cjs')
    writeFileSync(path, `require('node:fs').writeFileSync(${JSON.stringify(join(home, 'intruded'))}, '')`)
    return path
  }
  const intruded = () => existsSync(join(home, 'intruded'))

  test('it ignores NODE_OPTIONS, which Node obeys', async () => {
    const env = { NODE_OPTIONS: `--require ${script()}` }
    expect(await run(['--version'], env)).toEqual({ out: `${manifest.version}\n`, err: '', code: 0 })
    expect(intruded()).toBe(false)
    await once(spawn(process.execPath, ['-e', '0'], { env }), 'exit')
    expect(intruded()).toBe(true)
  })

  test('options of Node on its command line are refused as unknown options', async () => {
    expect(await run(['--require', script(), 'routes'])).toMatchObject({ code: 64 })
    expect(intruded()).toBe(false)
  })

  test('fork() runs no script from outside the extracted packages', async () => {
    const child = fork(script(), { execPath: executable, execArgv: [], env: { HOME: home }, silent: true })
    children.push(child)
    expect((await once(child, 'exit'))[0]).toBe(64)
    expect(intruded()).toBe(false)
  })
})
