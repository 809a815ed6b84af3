import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { basename, dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { executionStatuses, nodeStatuses } from '../core/dag/advance.ts'
import { jobStatuses } from '../core/store/store.ts'

const files = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
  .split('\n')
  .filter(path => path !== '' && existsSync(path))
const sources = files.filter(path => /^(bin|cli|server|core|gpu)\/.*\.ts$/.test(path))
const read = (path: string) => readFileSync(path, 'utf8')

/** Every module that a file imports, statically or not: package names as they are, own files from the root. */
function importsOf(path: string): string[] {
  const found = read(path).matchAll(
    /(?:^|\n)(?:import|export)\s[^;'"]*?\sfrom\s+['"]([^'"]+)['"]|(?:^|\n)import\s+['"]([^'"]+)['"]|\bimport\(\s*['"]([^'"]+)['"]/g,
  )
  return [...found]
    .map(match => (match[1] ?? match[2] ?? match[3])!)
    .map(to => (to.startsWith('.') ? normalize(join(dirname(path), to)) : to))
}

const rooms: Record<string, { own: RegExp; packages: RegExp }> = {
  core: {
    own: /^core\//,
    packages:
      /^(node:|zod$|better-sqlite3$|piscina$|yaml$|node-llama-cpp$|@huggingface\/hub$|@audio\/decode-\w+$|sharp$|ipaddr\.js$|undici$|wasm-media-encoders$)/,
  },
  server: { own: /^(server|core)\//, packages: /^(node:|zod$|h3$|listhen$|prom-client$|undici$|@fastify\/busboy$)/ },
  gpu: { own: /^(gpu|core)\//, packages: /^(node:|zod$|execa$|undici$|node-llama-cpp$|@huggingface\/jinja$)/ },
  cli: { own: /^(cli|server|core|gpu)\//, packages: /^(node:|zod$|commander$|consola(\/|$)|undici$|uqr$|yaml$)/ },
}

test.each(Object.keys(rooms))('%s imports only what it may know', room => {
  const { own, packages } = rooms[room]!
  const wrong = sources
    .filter(path => path.startsWith(`${room}/`))
    .flatMap(path =>
      importsOf(path)
        .filter(to => !(own.test(to) || packages.test(to)))
        .map(to => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

test('only cli/app.ts knows the server and the GPUs at once', () => {
  const both = sources.filter(path => {
    const imports = importsOf(path)
    return imports.some(to => to.startsWith('server/')) && imports.some(to => to.startsWith('gpu/'))
  })
  expect(both).toEqual(['cli/app.ts'])
})

/** Inside core, a folder may import those on its left. */
const order = ['dag', 'store', 'accounts', 'models', 'files', 'jobs', 'workflows', 'batches', 'webhooks']
test('inside core, what comes later is not known earlier', () => {
  const folder = (path: string) => order.indexOf(path.split('/')[1] ?? '')
  const wrong = sources
    .filter(path => path.startsWith('core/') && folder(path) >= 0)
    .flatMap(path =>
      importsOf(path)
        .filter(to => folder(to) > folder(path) && to.startsWith('core/'))
        .map(to => `${path} imports ${to}`),
    )
  expect(wrong).toEqual([])
})

test('no file and no folder is a drawer', () => {
  const drawer = /^(utils?|helpers?|common|misc|shared|lib|types|interfaces|services|managers|controllers)(\.[a-z]+)*$/
  expect(files.filter(path => path.split('/').some(part => drawer.test(part)))).toEqual([])
})

test('no source file is past 300 lines', () => {
  expect(sources.filter(path => read(path).split('\n').length > 301)).toEqual([])
})

test('SQL is written in core/store only', () => {
  const sql = /\b(SELECT .+ FROM|INSERT INTO|UPDATE \w+ SET|DELETE FROM)\b/
  expect(sources.filter(path => !path.startsWith('core/store/') && sql.test(read(path)))).toEqual([])
})

test('the environment is read in one place', () => {
  // The launchers of the program itself ask before any configuration exists.
  const allowed = /^(core\/config|core\/assets|core\/extract\w*|cli\/main|cli\/terminal|bin\/.*)\.ts$/
  expect(
    sources.filter(
      path => /process\.env\b/.test(read(path)) && !allowed.test(path) && !path.startsWith('core/assets/'),
    ),
  ).toEqual([])
})

test('only the entry ends the process', () => {
  expect(
    sources.filter(path => /process\.exit\(/.test(read(path)) && path !== 'cli/main.ts' && !path.startsWith('bin/')),
  ).toEqual([])
})

test('the states of jobs, executions and nodes are the same words in the code and in the schema of the store', () => {
  const schema = files
    .filter(path => path.startsWith('core/store/sqlite/migrations/'))
    .map(read)
    .join('\n')
  for (const status of [...jobStatuses, ...executionStatuses]) expect(schema).toContain(`'${status}'`)
  // That a node runs is told by its job.
  for (const status of nodeStatuses.filter(one => one !== 'running')) expect(schema).toContain(`'${status}'`)
})

test('every path that the README names exists', () => {
  const named = [...read('README.md').matchAll(/`((?:bin|cli|server|core|gpu|test)\/[\w./-]*)`/g)].map(
    ([, path]) => path!,
  )
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter(path => !existsSync(path))).toEqual([])
})

test('a test file mirrors what it tests', () => {
  const folders = files
    .filter(path => /^test\/(core|server|gpu|cli)\/.*\.test\.ts$/.test(path))
    .map(path => dirname(path).replace(/^test\//, ''))
  expect([...new Set(folders)].filter(folder => !existsSync(folder))).toEqual([])
})

test('basenames are kebab-case', () => {
  expect(sources.filter(path => !/^[a-z0-9]+(-[a-z0-9]+)*(\.d)?\.ts$/.test(basename(path)))).toEqual([])
})
